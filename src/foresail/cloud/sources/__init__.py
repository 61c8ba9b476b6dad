"""Price sources, one file each; they register under the family ``price_source``."""
