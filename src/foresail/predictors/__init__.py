"""Predictors: how long will it run? One file each."""
