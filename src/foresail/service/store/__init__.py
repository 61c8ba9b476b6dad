"""Store of the service: requests, the event log, jobs as they stand, tokens and samples."""
