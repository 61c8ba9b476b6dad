"""Cycles and memory of a service that decides on a cluster of many pods, on a real API server.

Creates pods of one cpu (10,000, where 1,000 nodes of 8
cpus stand in), more than there is room for; waits until a service has bound all that fit; lets a
tenth of these end, so that what waits moves up; deletes what it created.

    python experiments/reliability/decide_on_many_pods.py KUBECONFIG [PODS] [POLICY]
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import msgspec
from bind_many_pods import PATH, create, delete

from foresail.client.connection import Connection as ServiceConnection
from foresail.client.service_client import ServiceClient
from foresail_kubernetes.connection import Access, Connection

CPUS = 8
BUCKET = re.compile(r'foresail_cycle_seconds_bucket\{le="([^"]+)"\} (\S+)')


async def nodes_of(access: Access, path: str = PATH) -> dict[str, str]:
    """Return the nodes that pods are bound to."""
    connection = await Connection.opened(access)
    try:
        items = msgspec.json.decode(await connection.ask("GET", path))["items"]
    finally:
        await connection.close()
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in items}


def cycles(address: str, token: str) -> tuple[float, float, float]:
    """Return how many cycles there were, and the bounds that half and 99 % of them keep."""
    headers = {"Authorization": f"Bearer {token}"}
    text = httpx.get(f"{address}/metrics", headers=headers, timeout=60.0).text
    found = [(float(bound), float(count)) for bound, count in BUCKET.findall(text)]
    total = found[-1][1]
    half, most = (next(b for b, count in found if count >= q * total) for q in (0.5, 0.99))
    return total, half, most


def wait_until_bound(access: Access, count: int, seconds: float = 300.0) -> float:
    """Wait until so many pods are bound; returns how long it took."""
    began = time.monotonic()
    while sum(map(bool, asyncio.run(nodes_of(access)).values())) < count:
        if time.monotonic() > began + seconds:
            raise TimeoutError(f"fewer than {count} pods are bound after {seconds:.0f} s")
        time.sleep(0.5)
    return time.monotonic() - began


def main() -> None:
    """Create, wait, let some end, delete; print the figures."""
    access, count = Access(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    policy = sys.argv[3] if len(sys.argv) > 3 else "foresail"
    room = CPUS * len(asyncio.run(nodes_of(access, "/api/v1/nodes")))
    names = [f"bench-{number}" for number in range(count)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        configuration = folder / "service.toml"
        configuration.write_text(
            f'policy = "{policy}"\nstate = "{folder}/state"\nshared_account = true\n'
            f'cluster = "kubernetes(config={access.config},decides=foresail)"\n'
            f'[listen]\nport = 0\nsocket = "{folder}/socket"\n'
        )
        asyncio.run(create(access, names, "foresail", "1"))
        code = "from foresail.cli.main import main; main()"
        command = [sys.executable, "-c", code, "serve", str(configuration)]
        log = (folder / "log").open("w+")
        daemon = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            took = wait_until_bound(access, min(room, count))
            print(f"{min(room, count)} of {count} pods bound in {took:.1f} s from the start")
            freed = names[: min(room, count) // 10]
            asyncio.run(delete(access, freed))
            expected = min(room, count - len(freed))
            took = wait_until_bound(access, expected)
            print(f"{len(freed)} deleted; {expected} bound {took:.1f} s after the last")
            with ServiceClient(ServiceConnection(str(folder / "socket"), "")) as service:
                token = service.create_token("admin", "admin")["secret"]
            address = re.findall(r"http://\S+", (folder / "log").read_text())[0]
            total, half, most = cycles(address, token)
            print(f"{total:.0f} cycles: half at most {half} s, 99 % at most {most} s")
            status = Path(f"/proc/{daemon.pid}/status").read_text()
            (peak,) = re.findall(r"VmHWM:\s+(\d+)", status)
            print(f"at most {1024 * int(peak) / 1e6:.0f} MB resident")
        finally:
            daemon.terminate()
            daemon.wait()
            asyncio.run(delete(access, [*asyncio.run(nodes_of(access))]))


if __name__ == "__main__":
    main()
