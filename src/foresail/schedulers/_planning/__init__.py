"""Planning ahead under uncertainty: the core that TetriSched and 3Sigma are configurations of."""
