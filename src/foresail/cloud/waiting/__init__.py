"""Rent or wait: which jobs wait for fixed machines, which run at once on rented ones."""
