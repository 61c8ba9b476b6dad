"""Conformance suites, shipped: what every plug-in of a family must do. For third parties too."""
