"""Capacity that services can rely on, of machines that the provider may take back at any time."""
