"""Studies of SLearn: runtimes learned from pilot tasks instead of history."""
