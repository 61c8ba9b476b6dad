"""Studies of waiting policies: which jobs wait for fixed resources, which run on rented ones."""
