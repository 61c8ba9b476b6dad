"""Studies of 3Sigma: whole distributions of runtimes against single estimates."""
