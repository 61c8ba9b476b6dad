"""How fast Foresail is, as ratios against references measured in the same run."""
