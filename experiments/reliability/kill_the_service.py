"""Kills a live service again and again: ``kill_the_service.py --kills 200``; takes minutes."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "service"))

from killing import Victim, free_port, kill_again_and_again


def main() -> int:
    """Print what was found; status 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", default="easy,recent,incremental")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = kill_again_and_again(
            Victim(Path(folder), free_port(), chosen.policy), chosen.kills, chosen.seed
        )
    again = found.recoveries
    print(f"kills                     {found.kills}")
    print(f"jobs accepted             {len(found.accepted)}, and {len(found.held)} held")
    print(f"lost, twice or wrong      {len(found.faults)}")
    print(f"listens again after       {statistics.median(again):.2f} s, at most {max(again):.2f} s")
    for fault in found.faults[:20]:
        print(fault)
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
