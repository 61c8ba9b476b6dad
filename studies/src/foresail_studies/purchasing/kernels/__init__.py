"""Compiled steps of the study of purchasing."""
