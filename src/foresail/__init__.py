"""Foresail: a cluster scheduler that plans by the odds."""

__version__ = "0.1.0"
