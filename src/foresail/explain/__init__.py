"""Answers to users' first questions, from the same state and event log."""
