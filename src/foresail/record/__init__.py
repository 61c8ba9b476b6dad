"""The records of every run: the event log, what each record says, and the state they fold into."""
