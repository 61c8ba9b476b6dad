"""The compiled replay."""
