"""The command line: one small file per command group; parses, calls, prints."""
