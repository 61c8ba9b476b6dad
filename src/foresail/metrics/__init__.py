"""Metrics: functions of a schedule table."""
