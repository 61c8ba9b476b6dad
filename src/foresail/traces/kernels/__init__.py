"""Compiled parsers of text."""
