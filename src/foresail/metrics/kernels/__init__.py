"""Compiled measures of schedules."""
