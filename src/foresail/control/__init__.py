"""The one loop: take events, learn, predict, decide, check the decision, emit instructions."""
