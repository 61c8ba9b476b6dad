"""Hot loops over arrays, compiled with Numba; one step of a policy each, never a whole policy."""
