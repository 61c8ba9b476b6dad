"""Compiled parts of explanations."""
