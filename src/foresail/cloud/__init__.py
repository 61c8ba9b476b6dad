"""Renting: prices, waiting, purchasing and transient capacity."""
