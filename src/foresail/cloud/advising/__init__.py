"""The advice as a whole: how many nodes to own, which jobs wait, what the rest runs on."""
