"""Workload characterisation: the analyses that the studies draw, as tables and scalars."""
