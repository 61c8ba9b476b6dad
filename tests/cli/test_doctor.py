"""The doctor says what is well and what is not, with what to do about it."""

from __future__ import annotations

import socket

from typer.testing import CliRunner

from foresail.cli import doctor
from foresail.service.store.sql_store import SqlStore


def examined(tmp_path, more="", port=0):
    path = tmp_path / "service.toml"
    path.write_text(f'state = "{tmp_path / "state"}"\n{more}\n[listen]\nport = {port}\n')
    return CliRunner().invoke(doctor.app, [str(path)])


def test_all_is_well_before_the_first_start(tmp_path):
    result = examined(tmp_path)
    assert result.exit_code == 0
    assert "not well" not in result.output
    assert not (tmp_path / "state").exists()


def test_a_folder_that_others_see_a_port_that_is_taken_and_a_damaged_store(tmp_path):
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    (state / "foresail.db").write_bytes(b"no database" * 500)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = examined(tmp_path, port=taken.getsockname()[1])
    assert result.exit_code == 1
    assert result.output.count("not well") == 3
    assert "chmod 700" in result.output
    assert "another `listen.port`" in result.output


def test_a_whole_store_is_well(tmp_path):
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    SqlStore.in_file(state / "foresail.db").close()
    result = examined(tmp_path)
    assert "holds together" in result.output
    assert result.exit_code == 0
