"""Corrections: the next estimate of a job that runs longer than predicted."""
