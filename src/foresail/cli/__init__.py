"""The command line: parses, calls, prints; a command is imported when it is called."""
