"""Readers: a log file becomes canonical tables. One file each."""
