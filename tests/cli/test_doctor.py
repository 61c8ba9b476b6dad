"""The doctor says what is well and what is not, with what to do about it."""

from __future__ import annotations

import socket

from typer.testing import CliRunner

from foresail.cli.main import app_of
from foresail.live.adapters.local.machine import JobCgroups
from foresail.service import doctor as examination
from foresail.service.state_folder import StateFolder, passage_mode
from foresail.service.store.sql_store import SqlStore


def examined(tmp_path, more="", port=0):
    path = tmp_path / "service.toml"
    path.write_text(f'state = "{tmp_path / "state"}"\n{more}\n[listen]\nport = {port}\n')
    return CliRunner().invoke(app_of("doctor"), [str(path)])


def test_all_is_well_before_the_first_start(tmp_path):
    result = examined(tmp_path)
    assert result.exit_code == 0
    assert "not well" not in result.output
    assert not (tmp_path / "state").exists()


def test_it_says_what_cgroups_jobs_get(tmp_path, monkeypatch):
    found = JobCgroups(tmp_path, frozenset({"memory", "cpu"}))
    for permitted, says in (
        (None, "found below its watcher, counted and ended with it, and by its"),
        (found, f"one for each job below {tmp_path}; cpu, memory"),
        (JobCgroups(tmp_path), f"one for each job below {tmp_path}; no controller to limit them"),
    ):
        monkeypatch.setattr(examination, "permitted_cgroups", lambda each=permitted: each)
        result = examined(tmp_path)
        assert says in " ".join(result.output.split())
        assert result.exit_code == 0


def test_it_says_what_keeps_jobs_to_their_memory_and_gpus(tmp_path, monkeypatch):
    """The gap that remains where there is no controller, and that gpus are kept by their word."""
    more = 'cluster = "local(memory=6GiB,gpus=2)"'
    for permitted, says in (
        (None, "jobs are looked at every 5 s and may hold more between"),
        (JobCgroups(tmp_path, frozenset({"memory"})), "the kernel holds jobs to it"),
    ):
        monkeypatch.setattr(examination, "permitted_cgroups", lambda each=permitted: each)
        said = " ".join(examined(tmp_path, more).output.split())
        assert f"6 GiB for jobs that ask for some; {says}; what names none has no limit" in said
        assert "gpus 2; a job is given its own by CUDA_VISIBLE_DEVICES" in said
    assert "gpus none" in " ".join(examined(tmp_path, 'cluster = "local(gpus=0)"').output.split())


def test_a_folder_that_others_see_a_port_that_is_taken_and_a_damaged_store(tmp_path):
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    (state / "foresail.db").write_bytes(b"no database" * 500)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = examined(tmp_path, port=taken.getsockname()[1])
    assert result.exit_code == 1
    assert result.output.count("not well") == 3
    assert f"chmod {passage_mode():o}" in result.output
    assert "another `listen.port`" in result.output


def test_a_whole_store_is_well_in_the_folder_as_a_service_lays_it_out(tmp_path):
    state = tmp_path / "state"
    StateFolder(state).make()
    SqlStore.in_file(state / "foresail.db").close()
    result = examined(tmp_path)
    assert "holds together" in result.output
    assert result.exit_code == 0
