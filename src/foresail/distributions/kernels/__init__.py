"""Compiled arithmetic of distributions."""
