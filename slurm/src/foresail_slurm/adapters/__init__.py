"""Plug-ins of the family ``cluster``."""
