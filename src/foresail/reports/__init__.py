"""Tables, plots and one-file HTML reports."""
