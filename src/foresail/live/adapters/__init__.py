"""Cluster adapters, a folder each: what carries out instructions and reports events."""
