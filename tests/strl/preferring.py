"""The shape of most requests of the spec: fast where a job prefers to be, slower elsewhere."""

from __future__ import annotations

from foresail.strl.requests import either, unconstrained, within


def preferring(gang, sets, nodes, slowdown):
    """As fast as ``gang`` says within one of the sets, ``slowdown`` times longer anywhere else."""
    return either((unconstrained(gang.slower(slowdown), nodes), within(gang, sets)))
