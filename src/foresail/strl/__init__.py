"""STRL, the space-time request language: what a job asks for, where, when, and what it is worth."""
