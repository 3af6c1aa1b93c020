"""Published experiments done again: what was published beside what is measured here."""
