"""Packing by use: tasks share machines, as far as the distributions of what they use allow it."""
