"""Kill a service that decides on Slurm, stop Slurm's controller, again and again; then count.

    python kill_while_deciding.py TOOL FOLDER KILLS [SEED]

TOOL brings up a cluster in FOLDER (which it has done) and stops and starts its ``slurmctld``. Jobs
of one to eight cpus and some seconds are submitted as fast as they end; each notes that it runs.
Every fifth time it is the controller, by SIGTERM: one that is killed forgets what it has started in
the last seconds, and drains the nodes ("Duplicate jobid"). At the end each has to have run once.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from foresail_slurm.commands import moment, read_accounting, read_queue


def main(tool: str, folder: Path, kills: int, seed: int) -> None:
    """Run it, and print what came of the jobs."""
    draw, begin, jobs = random.Random(seed), time.time(), list[str]()
    runs, config = folder / "runs", folder / "foresail.toml"
    runs.write_text("")
    listen = f"[listen]\nport = 0\nsocket = '{folder}/foresail'\n"
    config.write_text(
        f"cluster = 'slurm(decides=main)'\nstate = '{folder}/foresail-state'\n{listen}"
    )
    code = "from foresail.cli.main import main; main()"
    command, log = [sys.executable, "-c", code, "serve", config], (folder / "service").open("a")
    service = subprocess.Popen(command, stdout=log, stderr=log)
    for kill in range(kills):
        while len(read_queue()) < 12:
            words = ["sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "-t", "1", "-n"]
            line = f"echo $SLURM_JOB_ID >>{runs}; sleep {draw.uniform(1.0, 5.0):.1f}"
            words += [str(2 ** draw.randrange(4)), "--wrap", line]
            jobs.append(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        time.sleep(draw.uniform(3.0, 15.0))
        if kill % 5 == 4:
            subprocess.run([tool, "stop", folder, "slurmctld"], check=True, capture_output=True)
            time.sleep(draw.uniform(0.0, 5.0))
            subprocess.run([tool, "start", folder, "slurmctld"], check=True, capture_output=True)
        else:
            service.send_signal(signal.SIGKILL)
            service.wait()
            time.sleep(draw.uniform(0.0, 3.0))
            service = subprocess.Popen(command, stdout=log, stderr=log)
    patience = time.monotonic() + 300.0
    while read_queue() and time.monotonic() < patience:
        time.sleep(1.0)
    time.sleep(10.0)
    service.terminate()
    begun = Counter(runs.read_text().split())
    rows = [row for row in read_accounting(begin) if (moment(row.Submit) or 0.0) >= begin - 1.0]
    states = Counter(row.State for row in rows)
    odd = {each.strip(): begun[each.strip()] for each in jobs if begun[each.strip()] != 1}
    print(f"{kills} kills, {len(jobs)} jobs, all but {odd} ran once; {dict(states)}")
    print(f"still there: {[(row.JobArrayID, row.Reason) for row in read_queue()]}")


if __name__ == "__main__":
    tool, place, number, *rest = sys.argv[1:]
    main(tool, Path(place), int(number), int(rest[0]) if rest else 1)
