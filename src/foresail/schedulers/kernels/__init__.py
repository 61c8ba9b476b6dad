"""Compiled passes of schedulers, and what plans are searched with."""
