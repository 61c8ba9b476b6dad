"""Simulators: the event engine and the compiled replay."""
