"""Compiled steps of predictors."""
