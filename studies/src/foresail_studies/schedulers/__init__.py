"""Schedulers as published that only studies need. One file each."""
