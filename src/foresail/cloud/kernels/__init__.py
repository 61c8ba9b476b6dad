"""Compiled packing of jobs onto machines, shared by waiting and purchasing."""
