"""Compiled availability of transient machines."""
