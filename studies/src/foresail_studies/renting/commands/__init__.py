"""Commands that appear below ``foresail cloud``: one file per command."""
