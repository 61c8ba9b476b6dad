"""Print what the default costs and gains against EASY, a line per log, shake and policy.

usage: python experiments/recommendation/default_against_easy.py TRACES [--logs NAME,...]
           [--policies POLICY;...] [--shakes N] [--seeds FIRST-LAST]

TRACES is the folder with the logs (``LOGS``). A shake varies all runtimes by three percent.
``--seeds`` judges on logs of the generator ``crowded`` (beside this file) instead. Columns: average
slowdown under EASY, how much of it is saved, mean and longest wait over EASY's, the share of jobs
later than 1.1 times EASY and an hour, by how many hours on average, time of the replay over EASY's.
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from candidates import LOGS, PROCESSORS

EVERY = {
    **LOGS,
    "RICC": "pwa/RICC-2010-2.swf.gz",
    "Curie-archive": "pwa/CEA-Curie-2011-2.1-cln.swf.gz",
}
MACHINES = {**PROCESSORS, "RICC": 8192}
HERE = Path(__file__).resolve().parent


def foresail(*arguments: str) -> str:
    """Return the lines that a command prints."""
    command = [str(Path(sys.executable).with_name("foresail")), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def compared(log: Path, policies: Sequence[str], *options: str) -> Iterator[dict[str, str]]:
    """Rows of ``foresail compare``: EASY's, then those of the policies."""
    asked = [part for policy in ("easy", *policies) for part in ("--with", policy)]
    rows = csv.DictReader(
        io.StringIO(foresail("compare", str(log), "--format", "csv", *options, *asked))
    )
    return (row for row in rows if row["policy"] != "recorded")


def tell(name: str, rows: Iterator[dict[str, str]]) -> None:
    """Print a line for each policy."""
    easy = next(rows)

    def over(row: dict[str, str], column: str) -> float:
        return float(row[column]) / max(float(easy[column]), 1e-9)

    slowdown = float(easy["average_bounded_slowdown"])
    for row in rows:
        saved = 100.0 * (1.0 - over(row, "average_bounded_slowdown"))
        late = 100.0 * float(row["held_up_share"])
        by = float(row["held_up_mean_seconds"] or 0.0) / 3600.0
        print(
            f"{name:18} {slowdown:7.1f} {saved:6.1f} % mean {over(row, 'mean_wait_seconds'):5.2f} "
            f"longest {over(row, 'max_wait_seconds'):5.2f} late {late:4.1f} % by {by:5.1f} h "
            f"cost {over(row, 'replay_seconds'):5.1f}  {row['policy']}",
            flush=True,
        )


def main() -> None:
    """Judge on logs, or on generated ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", type=Path)
    parser.add_argument("--logs", default=",".join(EVERY))
    parser.add_argument("--policies", default="foresail")
    parser.add_argument("--shakes", type=int, default=0)
    parser.add_argument("--seeds", default="")
    chosen = parser.parse_args()
    policies = chosen.policies.split(";")
    if chosen.seeds:
        first, last = map(int, chosen.seeds.split("-"))
        plugin = str(HERE / "crowded.py")
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(first, last + 1):
                log = Path(folder) / str(seed)
                foresail(
                    "trace",
                    "generate",
                    "crowded",
                    "--plugin",
                    plugin,
                    "--seed",
                    str(seed),
                    "-o",
                    str(log),
                )
                tell(f"crowded {seed}", compared(log, policies))
        return
    for name in chosen.logs.split(","):
        log = chosen.traces / EVERY[name]
        machine = ["--processors", str(MACHINES[name])] if name in MACHINES else []
        for shake in range(chosen.shakes + 1):
            noise = ["--noise", "0.03", "--conditions-seed", str(shake)] if shake else []
            tell(f"{name} {shake or ''}", compared(log, policies, *machine, *noise))


if __name__ == "__main__":
    main()
