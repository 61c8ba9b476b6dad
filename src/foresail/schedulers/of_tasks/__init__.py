"""Schedulers of jobs whose tasks start apart, one file each (``foresail.model.registry``)."""
