"""Differences between API servers, found once from what they say they serve; all are here.

Alike on all of them, from 1.20 on, are leases (``coordination.k8s.io/v1``), events (``v1``) and
bindings. Whether a server keeps scheduling gates is not asked: pods that have some there are gated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from foresail_kubernetes import wire
from foresail_kubernetes.connection import Connection, RefusedError

_POD_GROUPS: Final = (
    ("scheduling.k8s.io", ("v1beta1", "v1alpha3")),
    ("scheduling.x-k8s.io", ("v1alpha1",)),
    ("scheduling.volcano.sh", ("v1beta1",)),
)
"""API groups of pod groups: Kubernetes' own, of the scheduler plug-ins, Volcano's; of each, the
first version that is served."""


@dataclass(frozen=True, slots=True)
class Served:
    """APIs that a server serves, as far as servers differ."""

    eviction: str = "policy/v1"
    """Version of the body of an eviction."""
    pod_groups: tuple[str, ...] = ()
    """Paths of all pod groups."""


async def served(connection: Connection) -> Served:
    """Ask an API server what it serves; raises one of ``UNREACHABLE``.

    What it does not say is taken as of a new one, without pod groups.
    """
    eviction = "policy/v1"
    for each in await _resources(connection, "/api/v1"):
        if each.name == "pods/eviction" and each.version:
            eviction = f"{each.group}/{each.version}"
    known = {
        each.name: {one.version for one in each.versions} for each in await _groups(connection)
    }
    paths = []
    for group, versions in _POD_GROUPS:
        for version in versions:
            path = f"/apis/{group}/{version}"
            if version in known.get(group, ()) and any(
                each.name == "podgroups" for each in await _resources(connection, path)
            ):
                paths.append(f"{path}/podgroups")
                break
    return Served(eviction, tuple(paths))


async def _resources(connection: Connection, path: str) -> list[wire.ApiResource]:
    try:
        return _RESOURCES.decode(await connection.ask("GET", path)).resources
    except RefusedError:
        return []


async def _groups(connection: Connection) -> list[wire.ApiGroup]:
    try:
        return _GROUPS.decode(await connection.ask("GET", "/apis")).groups
    except RefusedError:
        return []


_RESOURCES: Final = msgspec.json.Decoder(wire.ApiResources)
_GROUPS: Final = msgspec.json.Decoder(wire.ApiGroups)
