"""Failed requests of a service whose machines are taken back, with the daemon and without.

A Deployment of ten replicas on a real API server, its pods real HTTP servers on loopback, asked by
20 clients that follow its Endpoints a second late; machines are taken back 30 s after a notice (the
shortest of the three clouds), so many a minute. Machines, kubelets and the scheduler are stood in
for (``tests/kubernetes/serving_cluster.py``). The cluster is there for nothing else.

    python experiments/reliability/revoke_machines.py KUBECONFIG [REQUESTS [RATE...]]
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "kubernetes")]

from foresail_kubernetes.transient.planning import Pool, added_up, plan_services  # noqa: E402
from foresail_kubernetes.transient.pools import placeholder  # noqa: E402
from foresail_kubernetes.transient.settings import read_settings  # noqa: E402
from serving_cluster import ON_DEMAND, Times, Trial, measure, objects, write_settings  # noqa: E402


def run(config: Path, trial: Trial, *, has_daemon: bool) -> dict[str, Any]:
    """Make the service anew, measure it, and add what its machines cost of on demand."""
    with tempfile.TemporaryDirectory() as name:
        settings = write_settings(Path(name))
        asked = read_settings(settings)
        (plan,) = plan_services(asked, settings.parent)
        pools = {each.name: each for each in added_up([plan])}
        count = itertools.count(1)

        def again(kind: str) -> dict[str, Any]:
            return placeholder(pools[kind], f"{kind}-again-{next(count)}", asked.pools)

        first = [
            placeholder(pool, f"{pool.name}-{number}", asked.pools)
            for pool in pools.values()
            for number in range(1, pool.count + 1)
        ]
        kubectl(config, "delete", "nodes", "--all", "--ignore-not-found")
        kubectl(config, "create", "-f", "-", document=[*first, *objects(10, 7)])
        try:
            found = measure(config, settings, trial, None if has_daemon else again)
        finally:
            words = ("deployment,service,pdb", "web", "--ignore-not-found")
            kubectl(config, "delete", *words)
            kubectl(config, "delete", "pods", "--all", "--grace-period=0", "--force")
        found["of_on_demand"] = cost(found["machines"], pools, plan.price_per_hour)
        return found


def cost(held: dict[str, float], pools: dict[str, Pool], price: float) -> float:
    """Return the price of the machines that there were over that of ten units on demand."""
    each = price / sum(pool.count for pool in pools.values())
    return sum(held.values()) * each / (10 / 2 * ON_DEMAND)


def kubectl(config: Path, *words: str, document: list[dict[str, Any]] | None = None) -> None:
    """Run kubectl, which is given some objects."""
    listed = {"apiVersion": "v1", "kind": "List", "items": document}
    given = None if document is None else json.dumps(listed)
    call = ["kubectl", f"--kubeconfig={config}", *words]
    subprocess.run(call, input=given, text=True, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Print a line for each rate, with the daemon and without."""
    config = Path(sys.argv[1])
    requests = int(sys.argv[2]) if len(sys.argv) > 2 else 450_000
    rates = [float(each) for each in sys.argv[3:]] or [0.0, 1.0, 2.0, 4.0]
    for rate in rates:
        for has_daemon in (False, True):
            trial = Trial(requests, 20, rate, 30.0, 1.0, Times())
            found = run(config, trial, has_daemon=has_daemon)
            print(
                f"{rate:g} a minute, {'with' if has_daemon else 'without'} the daemon: "
                f"{found['revoked']} revoked, {found['failed']} of {requests} failed, "
                f"{requests / found['seconds']:.0f} a second; p50 {1000 * found['p50']:.1f}, "
                f"p90 {1000 * found['p90']:.1f}, p99 {1000 * found['p99']:.1f} ms; machines cost "
                f"{100 * found['of_on_demand']:.1f} % of on demand",
                flush=True,
            )


if __name__ == "__main__":
    main()
