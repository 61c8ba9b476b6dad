"""A service that observes a real Slurm, whose reading commands run as nobody."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from live_service import LiveService, live_service
from real_slurm import as_nobody, slurm, submit
from shared import shared

__all__ = ["slurm"]


def until(service: LiveService, **wanted: str) -> dict[str, Any]:
    """Wait until jobs are in these states; returns all jobs by Slurm's id."""
    end = time.monotonic() + 240.0  # looks that Slurm leaves waiting take half a minute each
    states: dict[str, str] = {}
    with service.client() as client:
        while time.monotonic() < end:
            rows = client.get("/v1/jobs").json().get("jobs", ())
            jobs = {row["job_id"].removeprefix("slurm:"): row for row in rows}
            states = {name: row["state"] for name, row in jobs.items()}
            if all(states.get(name.strip("_")) == state for name, state in wanted.items()):
                return jobs
            time.sleep(0.2)
    raise AssertionError(states)


@pytest.mark.slow
@pytest.mark.parametrize("slurm", ["slurm-cluster"], indirect=True)
def test_jobs_of_slurm_are_followed(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through requeue, cancellation, an absence of slurmctld and a kill of the service."""
    for name, value in as_nobody(slurm, tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin/nowhere:{slurm['PATH']}")
    tool, folder = shared("tools/slurm-cluster"), slurm["FOLDER"]

    def control(*words: str) -> None:
        subprocess.run(words, env=slurm, check=True, capture_output=True)

    wide = submit(slurm, "-n", "8", "-t", "5", "-J", "a|b,\nc", "--wrap", "sleep 3600")
    narrow = submit(slurm, "-n", "2", "-t", "5", "-J", "later", "--wrap", "sleep 3600")
    held = submit(slurm, "-H", "-n", "1", "-t", "5", "--wrap", "true")
    with live_service(tmp_path, "cluster = 'slurm'") as service:
        jobs = until(service, **{f"_{wide}": "running", f"_{narrow}": "pending"})
        assert (jobs[wide]["name"], jobs[wide]["cpus"]) == ("a|b,?c", 8)
        with service.client() as client:
            assert client.get("/v1/cluster").json()["free_cpus"] == 0.0
            said = client.get(f"/v1/jobs/{held}").json()["reason"]["sentence"]
            assert said == "left to the cluster: is kept back (JobHeldUser)"
            for _ in range(60):
                forecast = client.get(f"/v1/jobs/slurm:{narrow}/forecast")
                if forecast.status_code == 200:
                    break
                time.sleep(1.0)
            assert forecast.json()["job_id"] == f"slurm:{narrow}"
            refused = client.post("/v1/jobs/cancel", json={"job_ids": [narrow]})
            assert refused.status_code != 500
        control("scontrol", "requeuehold", wide)
        until(service, **{f"_{wide}": "held", f"_{narrow}": "running"})
        control(tool, "stop", folder, "slurmctld")
        time.sleep(12.0)
        with service.client() as client:
            assert "the cluster cannot be reached" in client.get("/v1/health").text
        service.process.kill()
    control(tool, "start", folder, "slurmctld")
    time.sleep(3.0)
    quick = submit(slurm, "-n", "1", "-t", "5", "-J", "quick", "--wrap", "true")
    time.sleep(5.0)
    control("scancel", held, narrow)
    time.sleep(3.0)
    control("scontrol", "release", wide)
    with live_service(tmp_path, "cluster = 'slurm'") as service:
        ended = {f"_{quick}": "completed", f"_{held}": "cancelled", f"_{narrow}": "cancelled"}
        until(service, **ended)
    called = {line.split()[0] for line in (tmp_path / "called").read_text().splitlines()}
    assert called == {"squeue", "sinfo", "sacct"}
