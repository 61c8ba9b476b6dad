"""Compiled loops of evaluations."""
