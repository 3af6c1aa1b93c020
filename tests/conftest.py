"""Settings of all tests."""

from hypothesis import settings

# The first call of a compiled function loads or compiles it: no limit on the time of a single example.
settings.register_profile("crownhead", deadline=None)
settings.load_profile("crownhead")
