"""The conformance suite of readers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import polars as pl

from foresail.checks.rules import (
    NOTHING,
    BrokenRuleError,
    Make,
    Rule,
    bound,
    demand,
    require_conformity,
)
from foresail.model.errors import InputError
from foresail.model.registry import Entry
from foresail.traces import schema
from foresail.traces.reading import Reader, Sample, read
from foresail.traces.workload import Workload


def check_reader(entry: Entry, example: str | None = None, **options: Any) -> None:
    """Apply every rule that readers must keep to a registered one.

    Options are its parameters. The example is a correct log of at least two jobs, in the layout it
    reads; without one, the rules about good logs are left out.

    Raises ``NonconformityError`` if it breaks a rule; the message lists every broken one.
    """
    rules: list[Rule] = [bound(rule, entry.name, options) for rule in _ABOUTNOTHING]
    if example is not None:
        rules += [bound(rule, entry.name, options, example) for rule in _ABOUT_GOOD_LOGS]
    record = entry.parameters(**options)
    require_conformity(f"reader {entry.name!r}", lambda: entry.build(record), rules)


def what_is_no_log(name: str, options: dict[str, Any], make: Make) -> None:
    """A file that is no log is an InputError: empty, blank, binary, prose, cut off."""
    del make
    for kind, content in NOTHING.items():
        try:
            _read(name, content, options)
        except InputError:
            continue
        raise BrokenRuleError(f"a file with {kind} content is read")


def recognises_anything(name: str, options: dict[str, Any], make: Make) -> None:
    """Asked whether it recognises anything at all, it says no instead of failing."""
    del name, options
    reader: Reader = make()
    for kind, content in NOTHING.items():
        sample = Sample(Path("nothing.log"), content.decode("utf-8", errors="replace"))
        demand(not reader.recognises(sample), f"it recognises {kind} content")


def recognises_example(name: str, options: dict[str, Any], example: str, make: Make) -> None:
    """Demand that it recognises the example."""
    del name, options
    demand(make().recognises(Sample(Path("example.log"), example)), "it does not")


def canonical_jobs(name: str, options: dict[str, Any], example: str, make: Make) -> None:
    """The example's jobs come with the canonical columns, unique ids, in order of submission."""
    del make
    jobs = _read(name, example.encode(), options).jobs
    demand(jobs.height >= 2, f"{jobs.height} jobs")
    for column, kind in schema.JOBS.items():
        demand(jobs.schema.get(column) == kind, f"column {column!r} is {jobs.schema.get(column)}")
    demand(jobs["job_id"].is_unique().all(), "ids are used twice")
    demand(jobs["submit_seconds"].is_sorted(), "not in order of submission")


def same_file_same_jobs(name: str, options: dict[str, Any], example: str, make: Make) -> None:
    """The same log gives the same jobs."""
    del make
    first, second = (_read(name, example.encode(), options).jobs for _ in range(2))
    demand(first.equals(second), "the second reading differs")


def bad_lines_counted(name: str, options: dict[str, Any], example: str, make: Make) -> None:
    """A line that is no job is counted among the repairs, or an error; never dropped in silence."""
    del make
    whole = _read(name, example.encode(), options)
    spoilt = example.rstrip("\n") + "\nthis,is no;job at\tall\n"
    try:
        workload = _read(name, spoilt.encode(), options, strict=False)
    except InputError:
        return
    counted = sum(workload.meta.repairs.values()) - sum(whole.meta.repairs.values())
    demand(counted > 0, f"repairs {dict(workload.meta.repairs)}")
    kept = workload.jobs.filter(pl.col("job_id").is_in(whole.jobs["job_id"].implode()))
    demand(kept.height == whole.jobs.height, "good jobs went with the bad line")


def strict_refuses(name: str, options: dict[str, Any], example: str, make: Make) -> None:
    """A line that is no job is an InputError when strict."""
    del make
    spoilt = example.rstrip("\n") + "\nthis,is no;job at\tall\n"
    try:
        _read(name, spoilt.encode(), options, strict=True)
    except InputError:
        return
    raise BrokenRuleError("it is read")


_ABOUTNOTHING: Final = (what_is_no_log, recognises_anything)
_ABOUT_GOOD_LOGS: Final = (
    recognises_example,
    canonical_jobs,
    same_file_same_jobs,
    bad_lines_counted,
    strict_refuses,
)


def _read(
    name: str, content: bytes, options: dict[str, Any], *, strict: bool | None = None
) -> Workload:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.txt"
        path.write_bytes(content)
        return read(path, name, strict=strict, **options)
