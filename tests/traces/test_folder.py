"""The canonical folder: what is written comes back equal, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from foresail.model.errors import InputError, UnknownNameError
from foresail.traces import folder, schema, source
from foresail.traces.folder import convert, load_workload, read_folder, write_folder
from foresail.traces.reading import occurrences, read
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

LINE = "{id} {submit} 5 100 4 -1 -1 4 200 -1 1 3 1 -1 2 -1 -1 -1\n"


def workload_of(submits, **meta) -> Workload:
    jobs = jobs_table(
        {
            "job_id": [f"j{i}" for i in range(len(submits))],
            "submit_seconds": submits,
            "runtime_seconds": [None] * len(submits),
            "tasks": [1] * len(submits),
            "colour": ["red"] * len(submits),
        }
    )
    return Workload(jobs, WorkloadMeta("somewhere", "test", **meta))


def swf_log(path: Path, ids, submits) -> Path:
    lines = [LINE.format(id=i, submit=s) for i, s in zip(ids, submits, strict=True)]
    path.write_text("; MaxProcs: 16\n" + "".join(lines))
    return path


_NUMBERS = st.one_of(st.none(), st.floats(0, 1e12))
_TEXTS = st.one_of(st.none(), st.text(max_size=6))
_STRATEGIES = {pl.Float64(): _NUMBERS, pl.Int64(): st.integers(1, 10**9), pl.String(): _TEXTS}
_META = st.builds(
    WorkloadMeta,
    source=st.text(max_size=5),
    reader=st.text(max_size=5),
    processors=st.one_of(st.none(), st.integers(1, 10**6)),
    origin_unix_seconds=st.one_of(st.none(), st.floats(0, 2e9)),
    time_zone=_TEXTS,
    header=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    repairs=st.dictionaries(st.text(max_size=3), st.integers(1, 9), max_size=2),
    filters=st.lists(st.tuples(st.text(max_size=3), st.integers(0, 9)), max_size=2).map(tuple),
)


@given(data=st.data(), rows=st.integers(0, 5), meta=_META)
def test_round_trip(tmp_path_factory, data, rows, meta):
    """Any workload comes back from its folder equal: values, types, nulls, nodes and meta."""

    def table(columns):
        made = {
            name: data.draw(st.lists(_STRATEGIES[kind], min_size=rows, max_size=rows))
            for name, kind in columns.items()
        }
        return pl.DataFrame(made, schema=columns)

    jobs = table({**schema.JOBS, "feature": pl.String()}).with_columns(
        submit_seconds=pl.int_range(rows).cast(pl.Float64)
    )
    workload = Workload(jobs, meta, data.draw(st.sampled_from([None, table(schema.NODES)])))
    path = tmp_path_factory.getbasetemp() / "round"
    write_folder(workload, path)
    again = read_folder(path)
    assert_frame_equal(again.jobs, workload.jobs)
    assert again.meta == workload.meta
    assert (again.nodes is None) == (workload.nodes is None)
    if workload.nodes is not None:
        assert_frame_equal(again.nodes, workload.nodes)


@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 100) | st.integers(10**9, 10**9 + 50)),
        min_size=1,
        max_size=40,
    )
)
def test_convert_gives_what_reading_gives(tmp_path_factory, jobs):
    """Streaming in small blocks and sorting outside memory changes nothing: ids, order, meta."""
    base = tmp_path_factory.getbasetemp()
    log = swf_log(base / "stream.swf", [j[0] for j in jobs], [j[1] for j in jobs])
    expected = read(log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BLOCK_BYTES", 128)
        patch.setattr(source, "_READ_BYTES", 128)
        patch.setattr(folder, "_ROWS_SORTED_AT_ONCE", 7)
        patch.setattr(folder, "_EVERY_HOW_MANY_FOR_SPLITS", 2)
        meta = convert(log, base / "streamed")
    converted = read_folder(base / "streamed")
    assert_frame_equal(converted.jobs, expected.jobs)
    assert converted.meta == meta == expected.meta
    assert sorted(p.name for p in (base / "streamed").iterdir()) == ["jobs.parquet", "meta.json"]


@given(ids=st.lists(st.integers(0, 5), min_size=1, max_size=20), cut=st.integers(1, 19))
def test_occurrences(ids, cut):
    """How often an id was used before, counted across chunks, or nothing if all are unique."""
    names = [str(i) for i in ids]
    expected = [names[:at].count(name) for at, name in enumerate(names)]
    parts = [names[:cut], names[cut:]]
    found = occurrences(pl.Series(p, dtype=pl.String) for p in parts)
    if found is None:
        assert len(set(names)) == len(names)
    else:
        assert found.tolist() == expected


def test_converting_a_folder_keeps_its_meta(tmp_path):
    """A canonical folder is a log too: source, repairs, filters and features survive."""
    workload = workload_of([0.0, 1.0], processors=4, repairs={"a": 1}, filters=(("f", 2),))
    write_folder(workload, tmp_path / "one")
    convert(tmp_path / "one", tmp_path / "two")
    again = load_workload(tmp_path / "two")
    assert again.meta == workload.meta
    assert_frame_equal(again.jobs, workload.jobs)


def test_processors_override(tmp_path):
    """The option --processors goes before the header, in memory and on disk."""
    log = swf_log(tmp_path / "log.swf", [1], [0])
    assert load_workload(log, processors=99).processors == 99
    assert convert(log, tmp_path / "out", processors=99).processors == 99


@pytest.mark.parametrize("name", ["out.csv", "out.swf.xz", "out.PARQUET"])
def test_a_folder_does_not_get_the_name_of_a_file(tmp_path, name):
    """Whoever asked for a table would find a folder."""
    jobs = {"job_id": ["1"], "submit_seconds": [0.0], "runtime_seconds": [1.0], "tasks": [1]}
    workload = Workload(jobs_table(jobs), WorkloadMeta("made", "made", 1))
    with pytest.raises(InputError, match=r"the name of a file.*expected a new folder"):
        write_folder(workload, tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_failure_leaves_nothing(tmp_path):
    """A log that turns out wrong half-way leaves no folder and no temporary one."""
    log = swf_log(tmp_path / "log.swf", [1, 1], [0, 1])
    with pytest.raises(InputError):
        convert(log, tmp_path / "out", strict=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.swf"]


def test_an_earlier_workload_survives_failure_and_is_replaced_on_success(tmp_path):
    """Replacing is all or nothing."""
    out = tmp_path / "out"
    write_folder(workload_of([0.0]), out)
    bad = swf_log(tmp_path / "log.swf", [1, 1], [0, 1])
    with pytest.raises(InputError):
        convert(bad, out, strict=True)
    assert len(read_folder(out)) == 1
    convert(bad, out)
    assert len(read_folder(out)) == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.swf", "out"]


def test_other_things_are_not_overwritten(tmp_path):
    """A file or a folder with other content is refused, and stays."""
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("x")
    for path in (tmp_path / "thesis", tmp_path / "thesis" / "chapter"):
        with pytest.raises(InputError, match="no workload is there already"):
            write_folder(workload_of([0.0]), path)
    with pytest.raises(InputError, match="cannot be written"):
        write_folder(workload_of([0.0]), tmp_path / "thesis" / "chapter" / "out")
    assert (tmp_path / "thesis" / "chapter").read_text() == "x"


def _without_column(path: Path) -> None:
    jobs = pl.read_parquet(path / "jobs.parquet")
    jobs.drop("tasks").write_parquet(path / "jobs.parquet")


def _with_other_type(path: Path) -> None:
    jobs = pl.read_parquet(path / "jobs.parquet")
    jobs.cast({"tasks": pl.Float64()}).write_parquet(path / "jobs.parquet")


def _cut_off(path: Path) -> None:
    file = path / "jobs.parquet"
    file.write_bytes(file.read_bytes()[:-9])


def _other_version(path: Path) -> None:
    file = path / "meta.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": 2}))


def _not_json(path: Path) -> None:
    (path / "meta.json").write_text("{")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_without_column, "field 'tasks': no column of this name and type; expected Int64"),
        (_with_other_type, "field 'tasks': .*found 'Float64'"),
        (_cut_off, "the Parquet file is damaged"),
        (_other_version, r"field 'version': not usable here \(found 2\); expected 1$"),
        (_not_json, "meta.json, line 1, column 2: is not JSON"),
    ],
)
def test_damaged_folders_are_refused(tmp_path, damage, words):
    """What is not a whole workload folder is refused, naming the file and what is wrong."""
    out = tmp_path / "out"
    write_folder(workload_of([0.0]), out)
    damage(out)
    for load in (load_workload, lambda path: read(path, "canonical")):
        with pytest.raises(InputError, match=words):
            load(out)


def test_unknown_readers_and_options(tmp_path):
    """An unknown reader, an option it lacks, an absent path or an empty folder: each by name."""
    log = swf_log(tmp_path / "log.swf", [1], [0])
    with pytest.raises(UnknownNameError, match="did you mean 'swf'"):
        read(log, "swff")
    with pytest.raises(InputError, match="field 'mapping': the reader 'swf' has no such option"):
        read(log, "swf", mapping=log)
    write_folder(workload_of([0.0]), tmp_path / "folder")
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('[columns]\nsubmit_seconds = "Submit"\n')
    with pytest.raises(InputError, match="'mapping': the reader 'canonical' has no such option"):
        read(tmp_path / "folder", mapping=mapping)
    with pytest.raises(InputError, match="no such file or folder"):
        read(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no reader knows this layout"):
        read(tmp_path / "empty")
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path, "swf")


def test_large_buckets_are_split_evenly(tmp_path):
    """Sorting outside memory keeps the file's order among equal times, however many there are."""
    rng = np.random.default_rng(1)
    submits = rng.integers(0, 3, 500)
    log = swf_log(tmp_path / "log.swf", range(500), submits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder, "_ROWS_SORTED_AT_ONCE", 50)
        convert(log, tmp_path / "out")
    ids = read_folder(tmp_path / "out").jobs["job_id"].cast(pl.Int64).to_numpy()
    assert ids.tolist() == np.argsort(submits, kind="stable").tolist()
