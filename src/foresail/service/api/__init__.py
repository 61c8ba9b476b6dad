"""The HTTP interface: one file for each kind of question, and the gate before them all."""
