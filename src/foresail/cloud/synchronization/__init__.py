"""The cost of waiting for each other, of workers that are not equally fast."""
