"""The SWF reader: against a slow reference on odd input, and on every kind of bad input."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from slow_swf import RefusedError, slow_swf

from foresail.model.errors import InputError
from foresail.traces import source
from foresail.traces.reading import read
from foresail.traces.workload import Workload

HEADER = b"; Version: 2.2\n; MaxNodes: 4\n; MaxProcs: 8\n; TimeZoneString: Europe/Stockholm\n"
FIRST = b"1 0 5 100 4 -1 -1 4 200 -1 1 3 1 -1 2 -1 -1 -1\n"
SECOND = b"2 10 -1 50.5 2 40.25 100 -1 -1 2048 5 4 1 7 2 1 1 30\n"


def written(folder: Path, text: bytes, name: str = "log.swf") -> Path:
    path = folder / name
    path.write_bytes(text)
    return path


def load(folder: Path, text: bytes, **options: object) -> Workload:
    return read(written(folder, text), "swf", **options)  # type: ignore[arg-type]


def test_fields_become_canonical(tmp_path):
    """All 18 fields arrive in canonical units, and -1 is unknown."""
    workload = load(tmp_path, HEADER + FIRST + SECOND)
    first, second = workload.jobs.to_dicts()
    assert first["job_id"] == "1"
    assert first["recorded_wait_seconds"] == 5.0
    assert (first["tasks"], first["requested_seconds"], first["status"]) == (4, 200.0, "completed")
    assert first["executable"] is None
    assert second["recorded_wait_seconds"] is None
    assert (second["tasks"], second["allocated_cpus"]) == (2, 2.0)
    assert second["memory_bytes_per_task"] == 2048 * 1024.0
    assert second["used_memory_bytes"] == 100 * 1024.0
    assert (second["used_cpu_seconds"], second["runtime_seconds"]) == (40.25, 50.5)
    assert (second["status"], second["executable"]) == ("cancelled", "7")
    assert (second["after_job_id"], second["think_seconds"]) == ("1", 30.0)


def test_header_directives(tmp_path):
    """MaxProcs goes before MaxNodes, and the zone and all directives are kept."""
    meta = load(tmp_path, HEADER + FIRST).meta
    assert (meta.processors, meta.time_zone) == (8, "Europe/Stockholm")
    assert meta.header["Version"] == "2.2"
    assert load(tmp_path, b"; MaxNodes: 4\n" + FIRST).meta.processors == 4
    assert load(tmp_path, FIRST).meta.processors is None


def test_header_lines_are_joined(tmp_path):
    """A directive given again and an indented line after it are kept with it."""
    text = b"; Note: one\n;       more\n;\n;       apart\n; Note: two\n" + FIRST
    assert load(tmp_path, text).meta.header == {"Note": "one more\ntwo"}


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz", "log.swf.zst", "log"])
def test_compression_is_told_by_content(tmp_path, name):
    """Plain, gzip (of several members) and zstd files give the same jobs, whatever their name."""
    plain = HEADER + FIRST + SECOND
    packed = {
        "log.swf": plain,
        "log.swf.gz": gzip.compress(HEADER + FIRST, mtime=0) + gzip.compress(SECOND) + b"\0" * 512,
        "log.swf.zst": zstandard.compress(HEADER + FIRST) + zstandard.compress(SECOND),
        "log": gzip.compress(plain, mtime=0),
    }[name]
    workload = read(written(tmp_path, packed, name))
    assert workload.jobs.equals(load(tmp_path, plain).jobs)


def test_unix_times_count_from_the_first_submission(tmp_path):
    """Submit times that are Unix times become seconds from the earliest, which is the origin."""
    text = FIRST.replace(b"1 0 ", b"1 1300000100 ", 1) + SECOND.replace(
        b"2 10 ", b"2 1300000000 ", 1
    )
    workload = load(tmp_path, text)
    assert workload.meta.origin_unix_seconds == 1300000000.0
    assert workload.jobs["submit_seconds"].to_list() == [0.0, 100.0]


def test_metacentrum_extension(tmp_path):
    """Named queue, bytes per node, and the list of machines beside the log."""
    line = b"1 5 0 9 4 1 1 4 60 8000 1 1 1 1 -1 1 -1 -1 {7,7,8,8} q_2h 2:ppn=2:x86_64\n"
    written(tmp_path, b"0\tzewura\t20\t80\t1\t1024\n", "log.swf.machines")
    workload = load(tmp_path, line)
    job = workload.jobs.row(0, named=True)
    assert (job["queue"], job["memory_bytes_per_task"]) == ("q_2h", 4000.0)
    assert job["extra"] == "{7,7,8,8} q_2h 2:ppn=2:x86_64"
    assert workload.meta.processors == 1600
    assert workload.nodes is not None
    assert workload.nodes["memory_bytes"].to_list() == [1024.0 * 1024.0]


def test_lines_across_blocks(tmp_path, monkeypatch):
    """Lines cut by the end of a block, and line numbers after it, are right."""
    text = HEADER + FIRST + b"\n" + SECOND.replace(b"2048", b"x")
    whole = load(tmp_path, text, strict=False)
    monkeypatch.setattr(source, "BLOCK_BYTES", 7)
    monkeypatch.setattr(source, "_READ_BYTES", 7)
    assert load(tmp_path, text, strict=False).jobs.equals(whole.jobs)
    with pytest.raises(InputError, match=r"line 7, field 'requested memory'.*'x'.*a number"):
        load(tmp_path, text, strict=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "the file is empty"),
        (HEADER, "holds no jobs"),
        (b"\n\n", "holds no jobs"),
        (gzip.compress(FIRST * 100, mtime=0)[:-12], "the gzip file is cut off"),
        (gzip.compress(FIRST, mtime=0)[:11], "the gzip file is cut off"),
        (zstandard.compress(FIRST * 100)[:-3], "the zstd file is cut off"),
        (gzip.compress(FIRST, mtime=0)[:-8] + b"\1" * 8, "the gzip compression is damaged"),
        (b"; a\n1 2 3\n", r"line 2: too few fields \(found 3\); expected at least 18 fields"),
        (FIRST.replace(b"100", b"1x0"), "line 1, field 'run time': no usable number"),
        (FIRST.replace(b"100", b"1e999"), "line 1, field 'run time': no usable number"),
        (FIRST.replace(b" 4 200", b" 4.5 200"), "'requested processors'.*a whole number"),
        (b"-" + FIRST, "field 'job number'"),
        (b"18446744073709551616" + FIRST[1:], "'job number'.*551616.*whole number of 64 bits"),
        (b"\xff\xfe\x00garbage\x80\n", "too few fields"),
    ],
)
def test_unusable_logs_are_refused(tmp_path, text, words):
    """What cannot be read at all is one error that says where and what."""
    with pytest.raises(InputError, match=words):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "repair", "jobs"),
    [
        (FIRST + b"2 1 2\n", "dropped_malformed_line", 1),
        (FIRST + SECOND.replace(b"50.5", b"fifty"), "dropped_malformed_line", 1),
        (SECOND + FIRST, "sorted_by_submit", 2),
        (FIRST + FIRST, "renamed_duplicate_id", 2),
        (FIRST + SECOND.replace(b" 10 ", b" -7 "), "dropped_without_submit", 1),
        (FIRST.replace(b"100", b"-100"), "unknown_for_negative_runtime_seconds", 1),
        (FIRST.replace(b" 5 ", b" -5 "), "unknown_for_negative_recorded_wait_seconds", 1),
        (FIRST.replace(b"-1 1 3", b"-1 9 3"), "unknown_for_undefined_status", 1),
        (FIRST + b"1 -1" + FIRST[3:].replace(b"-1 1 3", b"-1 3 3"), "dropped_partial_execution", 1),
        (FIRST[:-1] + b" caf\xe9\n", "replaced_undecodable_text", 1),
        (b"; MaxProcs: many\n" + FIRST, "ignored_header_directive", 1),
        (FIRST.replace(b"-1 4 200", b"-1 -7 200"), "unknown_for_negative_requested_processors", 1),
        (FIRST.replace(b"100", b"1e18"), "unknown_for_impossible_runtime_seconds", 1),
        (FIRST.replace(b"-1 4 200", b"-1 4000000000 200"), "unknown_for_impossible_tasks", 1),
    ],
)
def test_repairs_are_counted_and_strict_refuses(tmp_path, text, repair, jobs):
    """Each repair is counted under its name; strict makes the same log an error."""
    workload = load(tmp_path, text, strict=False)
    assert workload.meta.repairs == {repair: 1}
    assert len(workload) == jobs
    with pytest.raises(InputError):
        load(tmp_path, text, strict=True)


def test_ids_of_64_bits(tmp_path):
    """Two that are one as floats stay apart, and what follows one of them follows that one."""
    low, high = b"9007199254740992", b"9007199254740993"
    after = FIRST.replace(b" -1 -1\n", b" " + high + b" -1\n")
    text = low + FIRST[1:] + high + FIRST[1:] + b"18446744073709551615" + after[1:]
    jobs = load(tmp_path, text, strict=True).jobs
    assert jobs["job_id"].to_list() == [low.decode(), high.decode(), "18446744073709551615"]
    assert jobs["after_job_id"].to_list() == [None, None, high.decode()]


def test_strict_names_the_line_of_a_duplicate(tmp_path):
    """A duplicate id in strict reading is reported with its line."""
    with pytest.raises(InputError, match=r"line 6, field 'job_id': renamed duplicate id .*'1'"):
        load(tmp_path, HEADER + FIRST + FIRST, strict=True)


_INTEGERS = st.one_of(st.just(-1), st.integers(-3, 12), st.integers(-(2**66), 2**66))
_TOKENS = st.one_of(
    _INTEGERS.map(str),
    _INTEGERS.map(str),
    _INTEGERS.map(str),
    st.floats(allow_nan=False).map(repr),
    st.decimals(-1000, 1000, places=2).map(str),
    st.text("0123456789.eE+-x", min_size=1, max_size=24),
)
_SANE = st.tuples(*[st.integers(-1, 40).map(str) for _ in range(18)]).map(list)
_MIXED = st.tuples(_SANE, st.integers(0, 17), _TOKENS).map(
    lambda parts: [*parts[0][: parts[1]], parts[2], *parts[0][parts[1] + 1 :]]
)
_LINES = st.one_of(
    st.tuples(
        st.one_of(_SANE, _MIXED, st.lists(_TOKENS, max_size=20)),
        st.sampled_from([" ", "  ", "\t", " \r", "\x0b"]),
        st.sampled_from(["", " ", " extra text", " \r"]),
    ).map(lambda parts: parts[1].join(parts[0]) + parts[2]),
    st.sampled_from(["", ";", "  ; comment", "; MaxProcs: 7"]),
)


@given(lines=st.lists(_LINES, max_size=8), last=st.sampled_from(["", "\n"]))
def test_like_the_reference(tmp_path_factory, lines, last):
    """Odd numbers, columns and blanks: same jobs and repairs as the reference, or both refuse."""
    text = ("\n".join(lines) + last).encode()
    path = written(tmp_path_factory.getbasetemp(), text)
    try:
        expected, repairs = slow_swf(text)
    except RefusedError:
        with pytest.raises(InputError):
            read(path, "swf")
        return
    workload = read(path, "swf", strict=False)
    assert workload.meta.repairs == repairs
    assert workload.jobs.select(expected[0].keys()).to_dicts() == expected
