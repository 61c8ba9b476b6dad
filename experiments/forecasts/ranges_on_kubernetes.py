"""Starts of pods beside the ranges that a service stated, on a real API server.

    python ranges_on_kubernetes.py KUBECONFIG SEED...

The cluster is there for nothing else and has nodes without kubelets (four of 8 cpus), which are
stood in for: a pod that is bound runs, and has succeeded once its time is over. Six applications,
each with its own median runtime (lognormal, sigma 0.25), in namespaces of three users; limits are 2
to 3 times what a pod takes. A service decides, with nothing learned before: each seed gets a fresh
one. What it states is asked every 2 s; judged is what it said first of a pod, and at each doubling
of that pod's wait, beside when it was bound.
"""

from __future__ import annotations

import asyncio
import math
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import fmean, median
from typing import Any

import msgspec

from foresail.client.connection import Connection as ServiceConnection
from foresail.client.service_client import NoAnswer, ServiceClient, ServiceRefusal
from foresail_kubernetes.connection import Access, Connection, RefusedError

MEDIANS = {"align": 10, "sort": 14, "fit": 20, "render": 28, "solve": 40, "train": 60}
USERS = ("games", "mail", "man")
PODS, GAP_SECONDS, ASKED_SECONDS, NARROWEST_WAIT_SECONDS = 240, 3.2, 2.0, 1.0
PATCH = "application/strategic-merge-patch+json"

Answers = list[tuple[float, float, bool, float, float, float]]
"""Moments of questions, ages of answers, whether enough was known, 10, 50 and 90 % of the start."""


def drawn_pods(seed: int) -> list[tuple[float, float, str, dict[str, Any]]]:
    """Draw pods: seconds of submission, runtimes, namespaces and the pods themselves."""
    draw, at, pods = random.Random(seed), 0.0, []
    for number in range(PODS):
        at += draw.expovariate(1.0 / GAP_SECONDS)
        name = draw.choice([*MEDIANS])
        seconds = MEDIANS[name] * draw.lognormvariate(0.0, 0.25)
        limit = math.ceil(draw.uniform(2.0, 3.0) * seconds)
        cpus, user = 2 ** draw.randrange(4), USERS[[*MEDIANS].index(name) % len(USERS)]
        asked = {"requests": {"cpu": str(cpus), "memory": "64Mi"}}
        spec = {
            "schedulerName": "foresail",
            "restartPolicy": "Never",
            "activeDeadlineSeconds": limit,
            "containers": [{"name": "main", "image": f"x/{name}:1", "resources": asked}],
        }
        meta = {"name": f"{name}-{seed}-{number}", "labels": {"app": name}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        pods.append((at, seconds, user, pod))
    return pods


async def run_pods(access: Access, seed: int, starts: dict[str, float]) -> None:
    """Create pods at their times, and let them run; notes when each was bound."""
    connection, pods, begin = await Connection.opened(access), drawn_pods(seed), time.time()
    runtimes = {pod["metadata"]["name"]: seconds for _, seconds, _, pod in pods}
    ended = set[str]()

    async def say(path: str, phase: str) -> None:
        body = {"status": {"phase": phase}}
        await connection.ask("PATCH", f"{path}/status", None, body, PATCH)

    while len(ended) < PODS:
        while pods and time.time() - begin >= pods[0][0]:
            _, _, user, pod = pods.pop(0)
            await connection.ask("POST", f"/api/v1/namespaces/{user}/pods", None, pod)
        for each in msgspec.json.decode(await connection.ask("GET", "/api/v1/pods"))["items"]:
            meta, now = each["metadata"], time.time()
            name, path = meta["name"], f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
            if name not in runtimes or name in ended or "nodeName" not in each["spec"]:
                continue
            if name not in starts:
                starts[name] = now
                await say(path, "Running")
            elif now - starts[name] >= runtimes[name]:
                ended.add(name)
                await say(path, "Succeeded")
        await asyncio.sleep(0.2)
    for user in USERS:
        path = f"/api/v1/namespaces/{user}/pods"
        await connection.ask("DELETE", path, {"gracePeriodSeconds": "0"})
    await connection.close()


def stated(service: ServiceClient) -> dict[str, tuple[float, float, bool, float, float, float]]:
    """Return what the service states of all that waits, by name."""
    found = {}
    for row in service.jobs(states=["pending"]):
        if (forecast := row["forecast"]) and (start := forecast["start"]):
            points = (math.inf if start[p] is None else start[p] for p in ("p10", "p50", "p90"))
            name = row["job_id"].partition(".")[2].partition("+")[0]
            now = row["now_seconds"]
            found[name] = (now, now - forecast["made_seconds"], forecast["is_known"], *points)
    return found


async def ask(service: ServiceClient, answers: dict[str, Answers]) -> None:
    """Keep what is stated of each pod first, and at each doubling of its wait, until cancelled."""
    while True:
        try:
            now = await asyncio.to_thread(stated, service)
        except (NoAnswer, ServiceRefusal) as error:
            print(error)
            now = {}
        for name, answer in now.items():
            kept = answers[name]
            if len(kept) < 2 or answer[0] - kept[0][0] >= 2.0 * (kept[-1][0] - kept[0][0]):
                kept.append(answer)
        await asyncio.sleep(ASKED_SECONDS)


async def run_seed(access: Access, seed: int, folder: Path) -> list[Answers]:
    """Return answers with the true start last, those at first sight and those of doubled waits."""
    (folder / "state").mkdir()
    configuration = folder / "service.toml"
    cluster = f"kubernetes(config={access.config},decides=foresail)"
    configuration.write_text(
        f'policy = "foresail"\ncluster = "{cluster}"\nstate = "{folder}/state"\n'
        f'shared_account = true\n[listen]\nport = 0\nsocket = "{folder}/socket"\n'
    )
    code = "from foresail.cli.main import main; main()"
    with (folder / "log").open("w") as log:
        command = [sys.executable, "-c", code, "serve", str(configuration)]
        daemon = subprocess.Popen(command, stdout=log, stderr=log)
    starts, answers = dict[str, float](), defaultdict[str, Answers](list)
    try:
        while not (folder / "socket").exists():
            await asyncio.sleep(0.2)
        with ServiceClient(ServiceConnection(str(folder / "socket"), "")) as service:
            asking = asyncio.create_task(ask(service, answers))
            await run_pods(access, seed, starts)
            asking.cancel()
    finally:
        daemon.terminate()
        daemon.wait()
    first, doubled = list[Any](), list[Any]()
    for name, kept in answers.items():
        for number, answer in enumerate(kept):
            if starts[name] - answer[0] > NARROWEST_WAIT_SECONDS:
                (doubled if number else first).append((*answer, starts[name]))
    return [first, doubled]


def show(name: str, answers: list[Any]) -> None:
    """Print how many were judged, how often the range held, and the errors of the middle."""
    known = [each for each in answers if each[2]]
    held = fmean(low <= start <= high for *_, low, _, high, start in known)
    above = fmean(start > high for *_, high, start in known)
    errors = [abs(middle - start) for *_, middle, _, start in known]
    waits = median(start - asked for asked, *_, start in known)
    age = median(age for _, age, *_ in known)
    print(
        f"{name}: {len(answers)} answers, {len(answers) - len(known)} of too little known; "
        f"within 80 % ranges {100 * held:.1f} %, later {100 * above:.1f} %; median error "
        f"{median(errors):.1f} s, mean {fmean(errors):.1f} s, of a median wait of {waits:.1f} s; "
        f"median age of an answer {age:.1f} s",
        flush=True,
    )


async def prepare(access: Access) -> None:
    """Make the namespaces."""
    connection = await Connection.opened(access)
    for user in USERS:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": user}}
        try:
            await connection.ask("POST", "/api/v1/namespaces", None, body)
        except RefusedError as error:
            if error.status != 409:
                raise
    await connection.close()


def main() -> None:
    """Run the seeds one after another, and print what held."""
    access, judged = Access(sys.argv[1]), [list[Any](), list[Any]()]
    asyncio.run(prepare(access))
    for seed in map(int, sys.argv[2:]):
        with tempfile.TemporaryDirectory() as folder:
            of_seed = asyncio.run(run_seed(access, seed, Path(folder)))
        for kind, answers, all_of_kind in zip(("first", "doubled"), of_seed, judged, strict=True):
            all_of_kind += answers
            show(f"seed {seed}, {kind}", answers)
    show("all, first", judged[0])
    show("all, doubled", judged[1])


if __name__ == "__main__":
    main()
