"""Stops a service's PostgreSQL server again and again: ``stop_the_database.py --stops 20``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "service"))

from databases import PostgreSQLServer
from stopping import stop_again_and_again


def main() -> int:
    """Print what was found; status 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stops", type=int, default=20)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as database:
        server = PostgreSQLServer(Path(database))
        server.start()
        try:
            found = stop_again_and_again(Path(folder), server, chosen.stops)
        finally:
            server.stop()
    print(f"stops                     {chosen.stops}")
    print(f"jobs accepted             {len(found.accepted)}")
    print(f"answered 503              {found.refused}")
    print(f"lost, twice or wrong      {len(found.faults)}")
    print(f"accepts again after       at most {found.slowest_seconds:.2f} s")
    for fault in found.faults[:20]:
        print(fault)
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
