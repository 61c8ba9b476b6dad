"""The studies, one file each; they register under the family ``study``."""
