"""The study of accuracy: resumable, one row per log and predictor, tables for the documentation."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import polars as pl
import pytest

from foresail.traces.swf_writer import write_swf
from made_evaluations import random_jobs

SCRIPT = Path(__file__).resolve().parents[2] / "experiments" / "accuracy" / "accuracy.py"


@pytest.fixture
def accuracy(monkeypatch):
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("accuracy_study", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def traces(tmp_path):
    """A folder with one of the study's logs."""
    path = tmp_path / "traces" / "pwa" / "KTH-SP2-1996-2.swf.gz"
    path.parent.mkdir(parents=True)
    write_swf(random_jobs(200, seed=9), path)
    return tmp_path / "traces"


def test_tables_and_resumption(accuracy, traces, tmp_path, capsys):
    """What is there is not computed again; absent logs are said; a new predictor joins the rest."""
    output = tmp_path / "result"
    first = [str(traces), str(output), "--predictor", "recent"]
    accuracy.main(first)
    assert "LLNL-Thunder-2007-1.1-cln.swf.gz is not there" in capsys.readouterr().err
    kept = output / "results" / "KTH-SP2--recent.json"
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"nmae": 0.125}))
    accuracy.main([*first, "--predictor", "similar(classes=64)"])
    table = pl.read_csv(output / "accuracy.csv")
    assert table["predictor"].to_list() == ["recent", "similar(classes=64)"]
    assert table["jobs"].to_list() == [200, 200]
    assert table["nmae"][0] == 0.125
    page = (output / "accuracy-tables.txt").read_text("utf-8")
    assert "| log | jobs | `recent` | `similar(classes=64)` |" in page
    assert "| KTH-SP2 | 200 | **0.125** |" in page
    assert "| KTH-SP2 | 200 | – |" in page


def test_no_log_at_all(accuracy, tmp_path):
    """An empty folder is an error in words, and leaves no tables."""
    with pytest.raises(SystemExit, match="no log was found"):
        accuracy.main([str(tmp_path), str(tmp_path / "result"), "--predictor", "recent"])
    assert not (tmp_path / "result" / "accuracy.csv").exists()
