"""Two processes that compile side by side: with real processes and a cache of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
from numba.core import event
from foresail.control.policy import parse_policy
from foresail.kernels.beside import compiling_beside
from foresail.kernels.steps import step_address
from foresail.simulator.replay import steps_of

class Names(event.Listener):
    def __init__(self):
        self.names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, event):
        pass

steps = steps_of(parse_policy("in_order"))
names = Names()
event.register("numba:compile", names)
with compiling_beside(steps) as beside:
    if sys.argv[1] == "work":
        step_address(steps[-1])  # anything that is not in the cache
    beside.meet()
    process = beside._process
before = len(names.names)
for step in steps:
    step_address(step)
print(len(names.names) - before, process is not None, "replay_loop" in names.names)
"""


def told(folder, mode):
    """What the script says: compiled behind the meeting, whether there was another process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, mode],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif((os.cpu_count() or 1) == 1, reason="one processor: nothing runs beside")
def test_what_one_process_compiles_the_other_finds(tmp_path):
    """Behind the meeting nothing is left; the other compiled the loop; then all is cached."""
    left, beside, loop_here = told(tmp_path, "work")
    assert [left, beside, loop_here] == ["0", "True", "False"]
    left, beside, _ = told(tmp_path, "again")
    assert (left, beside) == ("0", "False")
