"""Cleaning filters: one file each, which registers itself in the family ``filter``."""
