"""Rehearsals: simulated units use a running service, and its records are compared with what was sent."""
