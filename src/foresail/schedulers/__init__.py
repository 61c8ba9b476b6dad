"""Schedulers: what starts now? One file each."""
