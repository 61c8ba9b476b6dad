"""Compiled steps of corrections."""
