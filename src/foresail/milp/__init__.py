"""Mixed-integer programs as sparse arrays, and the solvers that take them."""
