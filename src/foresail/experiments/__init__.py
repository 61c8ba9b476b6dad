"""Campaigns and published tables."""
