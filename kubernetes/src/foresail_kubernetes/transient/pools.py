"""Pools of transient nodes: how many of each type there are to be, and who is asked for them.

What is asked for is a number of machines, not one machine more: it may be said again after a crash.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from foresail_kubernetes.connection import Connection, RefusedError
from foresail_kubernetes.transient.leaving import TransientNode
from foresail_kubernetes.transient.planning import Pool
from foresail_kubernetes.transient.settings import TYPE, Pools

_COMMAND_SECONDS: Final = 60.0
_KARPENTER: Final = "karpenter.sh/v1"


def wanted(pools: Iterable[Pool], nodes: Iterable[TransientNode]) -> dict[Pool, int]:
    """Return the number of machines of each type that there is to be.

    One that is about to be taken back, and is there still, is one more: its successor is asked for
    as soon as that is known.
    """
    leaving = Counter(each.type for each in nodes if each.ends_seconds is not None)
    return {each: each.count + leaving[each.name] for each in pools}


def node_pool(pool: Pool, settings: Pools) -> dict[str, Any]:
    """Return the manifest of a NodePool of Karpenter that holds so many machines (``replicas``)."""
    zone, _, instance = pool.type.rpartition("/")
    asked = {
        "karpenter.sh/capacity-type": "spot",
        "node.kubernetes.io/instance-type": instance,
        "topology.kubernetes.io/zone": zone.rpartition("/")[2],
    }
    node_class = settings.node_class
    assert node_class is not None
    template = {
        "requirements": [
            {"key": key, "operator": "In", "values": [value]}
            for key, value in asked.items()
            if value
        ],
        "nodeClassRef": {
            "group": node_class.group,
            "kind": node_class.kind,
            "name": node_class.name,
        },
        "taints": [{"key": TYPE, "value": pool.name, "effect": "NoSchedule"}],
        "expireAfter": "Never",
    }
    return {
        "apiVersion": _KARPENTER,
        "kind": "NodePool",
        "metadata": {"name": f"transient-{pool.name}"},
        "spec": {
            "replicas": pool.count,
            "limits": {"nodes": str(2 * pool.count)},
            "disruption": {"consolidateAfter": "Never"},
            "template": {"metadata": {"labels": {TYPE: pool.name}}, "spec": template},
        },
    }


def placeholder(pool: Pool, name: str, settings: Pools) -> dict[str, Any]:
    """Return a node behind which there is no machine, for trials."""
    cpus = f"{round(1000 * pool.capacity * settings.cpus_for_each_unit)}m"
    amounts = {"cpu": cpus, "memory": "64Gi", "pods": "110"}
    taint = {"key": TYPE, "value": pool.name, "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {TYPE: pool.name, "pool": "transient"}},
        "spec": {"taints": [taint]},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Placeholder"}],
        },
    }


def missing_names(pool: Pool, nodes: Iterable[TransientNode]) -> list[str]:
    """Return names of nodes that are missing: the first that are free, so that none comes twice."""
    there = {each.name for each in nodes}
    staying = [each for each in nodes if each.type == pool.name and each.ends_seconds is None]
    names = (f"{pool.name}-{number}" for number in range(1, pool.count + len(there) + 1))
    return [name for name in names if name not in there][: max(0, pool.count - len(staying))]


class Maker:
    """Asks whoever makes machines for those that are to be there."""

    def __init__(self, connection: Connection, settings: Pools) -> None:
        self._connection = connection
        self._settings = settings

    async def ask(self, numbers: Mapping[Pool, int], nodes: Iterable[TransientNode]) -> None:
        """Ask for so many machines of each type, of which some nodes are there.

        Raises ``RefusedError``, one of ``UNREACHABLE``, or ``OSError`` with what a command said.
        """
        for pool, count in numbers.items():
            match self._settings.by:
                case "placeholder":
                    for name in missing_names(pool, nodes):
                        body = placeholder(pool, name, self._settings)
                        await self._created("/api/v1/nodes", body)
                case "command":
                    await self._run(pool.type, count)
                case _:
                    await self._resize(pool, count)

    async def _resize(self, pool: Pool, count: int) -> None:
        """Set the size of a NodePool, which is made where there is none."""
        path = f"/apis/{_KARPENTER}/nodepools"
        body = node_pool(pool, self._settings)
        await self._created(path, body)
        limits = {"nodes": str(pool.count + count)}
        change = {"spec": {"replicas": count, "limits": limits}}
        name = body["metadata"]["name"]
        kind = "application/merge-patch+json"
        await self._connection.ask("PATCH", f"{path}/{name}", None, change, kind)

    async def _created(self, path: str, body: Mapping[str, Any]) -> None:
        try:
            await self._connection.ask("POST", path, None, body)
        except RefusedError as error:
            if error.status != HTTPStatus.CONFLICT:  # it is there already
                raise

    async def _run(self, kind: str, count: int) -> None:
        call = [*self._settings.command, kind, str(count)]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*call, stdout=pipe, stderr=pipe)
        try:
            _, said = await asyncio.wait_for(process.communicate(), _COMMAND_SECONDS)
        except TimeoutError:
            process.kill()
            raise
        if process.returncode:
            words = " ".join(said.decode("utf-8", "replace").split())[:300]
            raise OSError(f"{' '.join(call)} ended with {process.returncode}: {words}")
