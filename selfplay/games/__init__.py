"""How games begin, are recorded and become samples: records, shards, the replay window."""
