"""Where the service keeps requests, the event log, the jobs as they stand, tokens and samples."""
