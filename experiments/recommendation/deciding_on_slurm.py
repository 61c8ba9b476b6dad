"""Foresail deciding on a Slurm cluster against Slurm's own backfill: same jobs, same nodes.

    python deciding_on_slurm.py run FILE SEED...                 # as root, on that of SLURM_CONF
    python deciding_on_slurm.py run FILE SEED... --serve CONFIG  # the same, decided by a service
    python deciding_on_slurm.py run FILE SEED... --order MOST    # by Slurm, in the order of lengths
    python deciding_on_slurm.py judge FILE FILE                  # Slurm's, then the other's

Jobs of six applications as in ``forecasts/against_slurm.py``, which ask for 2 to 3 times what they
take; seeds from 100 on are history: they run first, and are not judged. What is judged is what
accounting has, in whole seconds. The order (``foresail slurm order main --most MOST``) is set every
few seconds, as jobs are short here.
"""

from __future__ import annotations

import json
import math
import random
import sqlite3
import subprocess
import sys
import threading
import time
import tomllib
from contextlib import closing, suppress
from pathlib import Path
from statistics import fmean
from typing import Any

from foresail.model.errors import InputError
from foresail_slurm.command import order
from foresail_slurm.commands import (
    moment,
    read_accounting,
    read_nodes,
    read_queue,
    resources_of,
)
from foresail_slurm.state import size_of

MEDIANS = {"align": 22, "sort": 26, "fit": 32, "render": 40, "solve": 52, "train": 70}
USERS = ("games", "mail", "man")
JOBS, GAP_SECONDS, WIDEST, BOUND_SECONDS, HISTORY = 80, 5.0, 8, 10.0, 100
ORDER_SECONDS = 4.0


def jobs_of(seed: int) -> list[tuple[float, list[str]]]:
    """Return the jobs of a seed: when each is submitted (seconds), and how."""
    draw, at, jobs = random.Random(seed), 0.0, []
    for _ in range(JOBS):
        at += draw.expovariate(1.0 / GAP_SECONDS)
        name = draw.choice([*MEDIANS])
        seconds = max(15.0, MEDIANS[name] * draw.lognormvariate(0.0, 0.25))
        limit = math.ceil(draw.uniform(2.0, 3.0) * seconds / 60.0)
        user = USERS[[*MEDIANS].index(name) % len(USERS)]
        words = ["sbatch", f"--uid={user}", "-D", "/tmp", "-o", "/dev/null", "-J", name]
        words += ["-n", str(min(WIDEST, 2 ** draw.randrange(4))), "-t", str(limit)]
        jobs.append((at, [*words, "--wrap", f"sleep {seconds:.2f}"]))
    return jobs


def run(path: Path, seeds: list[int], config: Path | None, most: int | None) -> None:
    """Run the jobs of seeds one after the other; each leaves a line."""
    nodes = {row.NodeList: size_of(row).cpus for row in read_nodes() if row.PartitionName == "main"}
    service = None
    if config is not None:
        code = "from foresail.cli.main import main; main()"
        log = path.with_suffix(".log").open("w")
        command = [sys.executable, "-c", code, "serve", str(config)]
        service = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        time.sleep(60.0)
    if most is not None:
        threading.Thread(target=keep_in_order, args=(most,), daemon=True).start()
    for seed in sorted(seeds, key=lambda seed: seed < HISTORY):
        begin = time.time()
        for at, words in jobs_of(seed):
            time.sleep(max(0.0, begin + at - time.time()))
            subprocess.run(words, check=True, capture_output=True)
        while read_queue():
            time.sleep(1.0)
        time.sleep(10.0)
        known = read_accounting(begin).to_dicts()
        rows = [row for row in known if (moment(row["Submit"]) or 0.0) >= int(begin)]
        seen = {"seed": seed, "cpus": sum(nodes.values()), "rows": rows}
        seen["instructed"] = [] if service is None or config is None else instructed(config, begin)
        with path.open("a") as file:
            file.write(json.dumps(seen) + "\n")
    if service is not None:
        service.terminate()
        service.wait()


def keep_in_order(most: int) -> None:
    """Order the jobs that wait, again and again."""
    while True:
        time.sleep(ORDER_SECONDS)
        with suppress(InputError):  # no job waits, or Slurm is busy
            order("main", most)


def instructed(config: Path, begin: float) -> list[tuple[str, float]]:
    """Return the starts that the service instructed since a moment: job and time."""
    state = Path(tomllib.loads(config.read_text())["state"])
    found = []
    with closing(sqlite3.connect(f"file:{state / 'foresail.db'}?mode=ro", uri=True)) as database:
        kind = '{"kind":"instruction"%"type":"Start"%'
        for (line,) in database.execute("SELECT line FROM records WHERE line LIKE ?", (kind,)):
            record = json.loads(line)
            if record["time"] >= begin:
                job_id = record["instruction"]["job_id"].removeprefix("slurm:")
                found.append((job_id, record["time"]))
    return found


def judged(seen: dict[str, Any]) -> tuple[float, float, float]:
    """Return mean bounded slowdown, longest wait (seconds) and utilisation (percent) of a seed."""
    slowdowns, waits, work, times = [], [], 0.0, list[float]()
    rows = seen["rows"]
    assert len(rows) == JOBS, f"{len(rows)} attempts of {JOBS} jobs"
    for row in rows:
        assert row["State"] == "COMPLETED", row
        submit, start, end = (float(each) for each in (row["Submit"], row["Start"], row["End"]))
        slowdowns.append(max(1.0, (end - submit) / max(end - start, BOUND_SECONDS)))
        waits.append(start - submit)
        work += resources_of(row["ReqTRES"])[0].cpus * (end - start)
        times += submit, end
    return fmean(slowdowns), max(waits), 100.0 * work / seen["cpus"] / (max(times) - min(times))


def judge(paths: list[Path]) -> None:
    """Print the figures of each seed that both files have, and their means."""
    slurm, ours = (
        {each["seed"]: each for each in map(json.loads, path.read_text().splitlines())}
        for path in paths
    )
    print("        bounded slowdown   longest wait      utilisation")
    print("seed    Slurm  Foresail    Slurm  Foresail   Slurm  Foresail")
    found = []
    for seed in sorted(slurm.keys() & ours.keys()):
        if seed < HISTORY:
            pairs = [*zip(judged(slurm[seed]), judged(ours[seed]), strict=True)]
            found.append([value for pair in pairs for value in pair])
            print(f"{seed:<6}" + _line(found[-1]))
    print("mean  " + _line([fmean(column) for column in zip(*found, strict=True)]))
    delays = []
    for each in ours.values():
        last = dict(each["instructed"])
        rows = each["rows"]
        began = {row["JobID"]: float(row["Start"]) + 1.0 for row in rows}  # at most a second later
        delays += [began[job_id] - at for job_id, at in last.items() if job_id in began]
    if not delays:
        return
    delays.sort()
    print(f"instruct to start, at most: median {delays[len(delays) // 2]:.1f} s, ", end="")
    print(f"p99 {delays[min(len(delays) - 1, int(0.99 * len(delays)))]:.1f} s of {len(delays)}")


def _line(values: list[float]) -> str:
    return "{:7.2f} {:9.2f} {:8.0f} {:9.0f} {:7.1f} {:9.1f}".format(*values)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "judge":
        judge([Path(each) for each in rest])
    else:
        words, _, config = " ".join(rest).partition(" --serve ")
        words, _, most = words.partition(" --order ")
        file, *numbers = words.split()
        serves, orders = Path(config) if config else None, int(most) if most else None
        run(Path(file), [int(each) for each in numbers], serves, orders)
