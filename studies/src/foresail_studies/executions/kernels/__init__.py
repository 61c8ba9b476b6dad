"""Compiled parts of these schedulers."""
