"""The vocabulary: plain frozen records, the protocols and the registry. Read this floor first."""
