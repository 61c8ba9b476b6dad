"""Renting: prices, waiting, purchasing, transient capacity, cost of synchronisation."""
