"""A replay begins soon: what only other scenarios need is not imported."""

import json
import subprocess
import sys

REPLAYED = """
import json, sys
from foresail.cli.main import main
sys.argv = ["foresail", "simulate", sys.argv[1], "--policy", "easy", "--format", "csv"]
try:
    main()
except SystemExit as end:
    assert not end.code
print(json.dumps(sorted(sys.modules)))
"""
JOB = "1 0 0 100 1 -1 -1 1 200 -1 1 1 1 -1 -1 -1 -1 -1\n"


def test_a_replay_imports_no_other_engine(tmp_path):
    """Neither events, nor logs, nor live runs, nor plots."""
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n" + JOB)
    command = [sys.executable, "-c", REPLAYED, str(tmp_path / "log.swf")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert "foresail.simulator.replay" in loaded
    packages = {name.split(".")[1] for name in loaded if name.startswith("foresail.")}
    assert packages.isdisjoint({"live", "record", "evaluation", "campaigns", "explain", "cloud"})
    others = {"foresail.simulator.engine", "foresail.control.loop", "foresail.scenario.by_events"}
    assert loaded.isdisjoint({*others, "plotly", "httpx", "psutil"})
