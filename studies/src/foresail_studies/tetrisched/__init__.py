"""Studies of TetriSched: space-time plans against reservations and estimate error."""
