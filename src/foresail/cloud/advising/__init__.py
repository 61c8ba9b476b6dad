"""How many nodes to own, who waits for them, and what the rest runs on: the advice as a whole."""
