"""Services on machines that a provider may take back: plan, pools, notices, leaving, yielding."""
