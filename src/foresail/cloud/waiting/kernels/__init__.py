"""Compiled simulation of waiting policies."""
