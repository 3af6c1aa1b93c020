"""Processes and threads of this machine, and Ray's cluster (imported in ``cluster`` alone)."""
