"""Real clusters: what carries out instructions and reports events."""
