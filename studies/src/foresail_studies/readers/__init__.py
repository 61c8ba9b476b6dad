"""Readers of logs that publications use: Google, Alibaba, Philly, GAIA, SWIM, SLS."""
