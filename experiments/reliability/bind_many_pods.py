"""Bindings a second, time of a look, and memory of the cluster ``kubernetes`` on a real API server.

Creates pods on a cluster that is there for nothing else (10,000 for 1,000 nodes), hands a start of
each to the adapter as a daemon does, waits until the watch has confirmed all, lets pods of another
scheduler come, and deletes what it created. Nodes need no kubelets.

    python experiments/reliability/bind_many_pods.py KUBECONFIG [PODS]
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from foresail.model import event as news
from foresail.model.cluster import Placement
from foresail.model.decision import Start
from foresail_kubernetes.caps import Caps
from foresail_kubernetes.connection import Access, Connection
from foresail_kubernetes.deciding import DecidingKubernetes
from foresail_kubernetes.lease import Lease
from foresail_kubernetes.mirror import Mirror

PATH = "/api/v1/namespaces/default/pods"


def pod(name: str, scheduler: str, cpu: str) -> dict[str, Any]:
    """Return a small pod of a scheduler."""
    requests = {"cpu": cpu, "memory": "64Mi"}
    container = {"name": "main", "image": "x/bench:1", "resources": {"requests": requests}}
    spec = {
        "schedulerName": scheduler,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    meta = {"name": name, "labels": {"bench": "1"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


async def create(access: Access, names: list[str], scheduler: str, cpu: str = "100m") -> None:
    """Create pods, 32 at once."""
    connection = await Connection.opened(access)
    turn = asyncio.Semaphore(32)

    async def one(name: str) -> None:
        async with turn:
            await connection.ask("POST", PATH, None, pod(name, scheduler, cpu))

    try:
        await asyncio.gather(*(one(name) for name in names))
    finally:
        await connection.close()


async def delete(access: Access, names: list[str]) -> None:
    """Delete pods, 32 at once."""
    connection = await Connection.opened(access)
    turn = asyncio.Semaphore(32)

    async def one(name: str) -> None:
        async with turn:
            await connection.ask("DELETE", f"{PATH}/{name}", {"gracePeriodSeconds": "0"})

    try:
        await asyncio.gather(*(one(name) for name in names))
    finally:
        await connection.close()


def megabytes() -> float:
    """Most memory that was resident, in millions of bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0 / 1e6


def main() -> None:
    """Create, bind, look, delete; print the figures."""
    access, count = Access(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    names = [f"bench-{number}" for number in range(count)]
    others = [f"other-{number}" for number in range(1000)]
    began = time.monotonic()
    asyncio.run(create(access, names, "foresail"))
    print(f"created {count / (time.monotonic() - began):.0f} pods/s")
    began = time.monotonic()
    mirror = Mirror.begun(access)
    print(f"listed all in {time.monotonic() - began:.2f} s")
    assert mirror.connection is not None
    lease = Lease(mirror.connection, "default", "foresail-bench", "bench")
    with tempfile.TemporaryDirectory() as folder:
        adapter = DecidingKubernetes(mirror, Path(folder), print, Caps(), "foresail", lease)
        while not lease.is_held:
            time.sleep(0.05)
        began = time.monotonic()
        found = adapter.resume((), (), time.time())
        print(f"first look {time.monotonic() - began:.2f} s")
        jobs = [each.job.job_id for each in found if isinstance(each, news.Submitted)]
        homes = [(n.name, p.name) for p in adapter.cluster.partitions for n in p.nodes]
        began, looks, bound = time.monotonic(), list[float](), 0
        for number, job_id in enumerate(jobs):
            name, pool = homes[number % len(homes)]
            adapter.carry_out(Start(job_id, Placement(((pool, 1),), ((name, 1),))), time.time())
        handed = time.monotonic() - began
        refused = 0
        while bound + refused < len(jobs):
            look = time.monotonic()
            some = adapter.reports(time.time())
            looks.append(time.monotonic() - look)
            bound += sum(isinstance(each, news.Began) for each in some)
            refused += sum(isinstance(each, news.NotStarted) for each in some)
            time.sleep(0.2)
        seconds = time.monotonic() - began
        print(
            f"{bound} bound and confirmed, {refused} refused, in {seconds:.1f} s: "
            f"{bound / seconds:.0f} a second (handed over in {handed:.1f} s)"
        )
        worst = statistics.quantiles(looks, n=100)[-1] if len(looks) > 1 else looks[0]
        print(f"a look: median {statistics.median(looks):.3f} s, p99 {worst:.3f} s")
        asyncio.run(create(access, others, "another"))
        time.sleep(2.0)
        began = time.monotonic()
        some = adapter.reports(time.time())
        each = (time.monotonic() - began) / max(1, len(some))
        print(f"{len(some)} events of pods of another scheduler, {1000.0 * each:.3f} ms each")
        print(f"at most {megabytes():.0f} MB resident, the creating of pods included")
        adapter.close()
    asyncio.run(delete(access, [*names, *others]))


if __name__ == "__main__":
    main()
