"""Slurm as a cluster of Foresail: a distribution of its own, plugged in by entry points."""
