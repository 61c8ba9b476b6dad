"""Compiled steps of the studies of transient capacity."""
