"""How soon a service is there again that was killed: ``recover_the_service.py --jobs 10000``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "service"))

from killing import Victim, free_port


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        victim = Victim(Path(folder), free_port())
        victim.begin()
        with victim.client() as client:
            job = {"command": "sleep 1000", "directory": "/", "requested_time": 2000}
            for _ in range(chosen.jobs // 1000):
                client.submit([job] * 1000)
            time.sleep(2.0)
            victim.kill()
            begin = time.monotonic()
            victim.begin()
            listens, worked_to_listen = time.monotonic() - begin, victim.processor_seconds()
            counts = client.cluster()["jobs_by_state"]
            answers, worked_to_answer = time.monotonic() - begin, victim.processor_seconds()
            left = [each["job_id"] for each in client.jobs()]
            for job_id in left:  # the last ones first, so that none starts in place of another
                client.cancel(job_id)
            client.wait(left[-8:])
            victim.kill()
    print(f"jobs                      {sum(counts.values()):,}: {counts}")
    print(f"listens after             {listens:.2f} s, {worked_to_listen:.2f} s of processor time")
    print(f"tells the cluster after   {answers:.2f} s, {worked_to_answer:.2f} s of processor time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
