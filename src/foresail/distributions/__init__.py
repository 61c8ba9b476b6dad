"""Distributions: immutable beliefs about a duration or an amount."""
