"""Conformance suites: what every registered plug-in, ours or a user's, is put through."""
