"""The analyses, one file each; they register under the family ``analysis``."""
