"""Campaigns: many replays over logs and policies, resumable, and the tables made of them."""
