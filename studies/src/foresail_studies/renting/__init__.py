"""Analyses of the thesis on renting that are tools: waiting by policy, synchronisation by model."""
