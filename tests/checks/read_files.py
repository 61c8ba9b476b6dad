"""Everything that is read of what a user hands in as a file: how, and an example of each."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from checks.file_examples import EXAMPLES
from empty_rooms import empty_room
from foresail.campaigns.plan import read_plan as read_campaign
from foresail.checks.rules import demand
from foresail.cloud.prices_reading import (
    PriceSource,
    load_histories,
    load_prices,
)
from foresail.cloud.transient.offers import TransientType
from foresail.cloud.transient.plan import (
    CapacityPlan,
    TransientRental,
    read_kinds,
    read_plan,
    read_types,
)
from foresail.cloud.waiting.carbon import Repeat, read_intensity
from foresail.live.jobs_file import read_jobs
from foresail.model.errors import InputError
from foresail.model.registry import Entry, Example, entries, find
from foresail.strl.parser import read as read_strl
from foresail.traces import schema
from foresail.traces.folder import convert, load_workload, read_folder
from foresail.traces.reading import read
from foresail.traces.schedule import Schedule, ScheduleMeta, read_schedule, write_schedule
from foresail.traces.workload import Workload

Read = Callable[[Path, dict[str, Any]], object]
"""Reads a file, with files by option; raises ``InputError`` if it cannot be used."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A kind of file that is read."""

    name: str
    """Family and name."""
    examples: tuple[Example, ...]
    """At least one."""
    read: Read
    """Raises ``BrokenRuleError`` if what it reads is not whole."""
    borrowed: bool = False
    """Whether the examples are those of others, which it need not be able to read."""


def read_files() -> Iterator[ReadFile]:
    """Every registered reader and price source that reads files, then all other files."""
    yield from _plugins("reader", reader)
    yield from _plugins("price_source", price_source)
    for name, (examples, read_it) in _FURTHER.items():
        yield ReadFile(name, examples(), read_it)


def _plugins(family: str, of: Callable[[Entry], Read]) -> Iterator[ReadFile]:
    """One that shows no example is tried with those of all others."""
    shown = {entry.name: examples_of(entry) for entry in entries(family)}
    every = tuple(example for examples in shown.values() for example in examples)
    for entry in entries(family):
        borrowed = not shown[entry.name]
        yield ReadFile(
            f"{family} {entry.name}", every if borrowed else shown[entry.name], of(entry), borrowed
        )


def examples_of(entry: Entry) -> tuple[Example, ...]:
    """The examples of a plug-in, its own or here; empty if there are none."""
    build: object = entry.build
    if hasattr(build, "examples"):
        return build.examples()
    return EXAMPLES.get(build.__name__, lambda: ())()


def reader(entry: Entry) -> Read:
    """How a log reader reads."""

    def read_it(path: Path, options: dict[str, Any]) -> object:
        workload = read(path, entry.name, **options)
        demand_whole(workload)
        return workload

    return read_it


def price_source(entry: Entry) -> Read:
    """How a price source reads: all that it gives."""
    source = entry.build(entry.parameters())

    def read_it(path: Path, options: dict[str, Any]) -> object:
        del options
        told: list[object] = []
        refusal: InputError | None = None
        for kind, load in (("catalogue", load_prices), ("histories", load_histories)):
            if getattr(type(source), kind) is not getattr(PriceSource, kind):
                try:
                    told.append(load(str(path), entry.name))
                except InputError as error:
                    refusal = error
        if refusal is not None and not told:
            raise refusal
        return told

    return read_it


def demand_whole(workload: Workload) -> None:
    """Refuse a workload that was read by halves.

    Raises
    ------
    BrokenRuleError
        If a column is absent, an id is absent or twice, submissions are out of order or unknown, or
        a number is not finite or negative.
    """
    jobs = workload.jobs
    for column, kind in schema.JOBS.items():
        demand(jobs.schema.get(column) == kind, f"column {column!r} is {jobs.schema.get(column)}")
    demand(jobs.height, "no jobs")
    ids, submit = jobs["job_id"], jobs["submit_seconds"]
    demand(not ids.null_count() and ids.n_unique() == jobs.height, "an id is absent or twice")
    demand(not submit.null_count() and submit.is_sorted(), "submissions are out of order")
    wrong = jobs.filter(pl.any_horizontal(*_IMPOSSIBLE))
    demand(not wrong.height, f"numbers that cannot be: {wrong.to_dicts()}")


_IMPOSSIBLE: Final = (
    *(~pl.col(name).is_finite() for name, kind in schema.JOBS.items() if kind.is_float()),
    pl.col("submit_seconds", "tasks", "runtime_seconds", "cpus_per_task") < 0,
)


def _converted(path: Path, options: dict[str, Any]) -> object:
    """A log turned into a folder, and read from there."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "workload"
        convert(path, folder, **options)
        workload = read_folder(folder)
        demand_whole(workload)
        return workload


def _logs() -> tuple[Example, ...]:
    """Of some readers: how a log becomes a folder is the same for all."""
    names = ("canonical", "gaia", "swf", "swim", "table")
    return tuple(each for name in names for each in examples_of(find("reader", name)))


def _folders() -> tuple[Example, ...]:
    return examples_of(find("reader", "canonical"))


def _jobs_files() -> tuple[Example, ...]:
    table = (
        "name,command,cpus,requested_time,after,environment\n"
        "a,true,2,600,,\n"
        'b,"echo one, two",,1h30m,a,K=v L=w\n'
    )
    rows = (
        {"name": "a", "command": "true", "cpus": 2, "requested_time": "00:10:00"},
        {"name": "b", "command": ["echo", "x y"], "after": ["a"], "environment": {"K": "v"}},
    )
    toml = (
        '[[job]]\nname = "a"\ncommand = "true"\ncpus = 2\nrequested_time = 600\n\n[[job]]\n'
        'command = ["echo", "x y"]\nafter = "a"\nuser = "ada"\nenvironment = { K = "v" }\n'
        'directory = "."\n'
    )
    return (
        Example.of_text("jobs.csv", table),
        Example.of_text("jobs.jsonl", "".join(json.dumps(row) + "\n" for row in rows)),
        Example.of_text("jobs.toml", toml),
    )


def _intensities() -> tuple[Example, ...]:
    hours = "".join(f"{hour},{100 + hour}\n" for hour in range(24))
    dates = "".join(f"2024-03-31T{hour:02}:00,{100 + hour}\n" for hour in range(24))
    unix = "".join(f"{1_700_000_000 + 3600 * hour},{100 + hour}\n" for hour in range(24))
    return (
        Example.of_text("carbon.csv", "hours,grams_per_kwh\n" + hours),
        Example.of_text("carbon.csv", "time,grams_per_kwh\n" + dates),
        Example.of_text("carbon.csv", "unix_seconds,grams_per_kwh\n" + unix),
    )


def _types() -> tuple[Example, ...]:
    table = "name,capacity,availability,price_per_hour,on_demand_price_per_hour\n"
    toml = (
        '[[types]]\nname = "a"\ncapacity = 2\navailability = 0.9\nprice_per_unit_hour = 0.1\n\n'
        '[[types]]\nname = "b"\ncapacity = 4\navailability = 0.99\nprice_per_hour = 0.5\n'
    )
    return (
        Example.of_text("types.csv", table + "a,2,0.9,0.2,0.5\nb,4,0.99,0.5,\n"),
        Example.of_text("types.toml", toml),
    )


def _kinds() -> tuple[Example, ...]:
    table = "instance_type,capacity,price_per_hour,on_demand_price_per_hour\n"
    toml = '[[machines]]\ninstance_type = "a"\ncapacity = 2\nprice_per_hour = 0.1\n'
    return (
        Example.of_text("machines.csv", table + "a,2,0.2,0.5\nb,4,,\n"),
        Example.of_text("machines.toml", toml),
    )


def _plans() -> tuple[Example, ...]:
    rented = (TransientRental(TransientType("a", 2.0, 0.9, 0.1, 0.3), 4),)
    plan = CapacityPlan(6.0, 0.99, 0.0, 0.004, rented, "independent", 1.8)
    return (Example.of_text("plan.json", json.dumps(plan.to_record(), indent=1)),)


def _schedules() -> tuple[Example, ...]:
    run: dict[str, Any] = {"job_id": "a", "attempt": 1, "submit_seconds": 0.0, "cpus": 2.0}
    run |= {"start_seconds": 1.0, "end_seconds": 9.0, "ended_because": "completed"}
    rows = [{name: run.get(name) for name in schema.SCHEDULE} for _ in range(2)]
    table = pl.DataFrame(rows, schema=schema.SCHEDULE)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "schedule.parquet"
        write_schedule(Schedule(table, ScheduleMeta("easy", 4.0, "tiny")), path)
        return (Example({path.name: path.read_bytes()}, path.name),)


def _campaigns() -> tuple[Example, ...]:
    text = (
        'policies = ["easy", "fcfs"]\ntriples = false\nconventions = "standard"\n'
        'filters = ["replayable"]\nenforce_limits = true\n\n'
        '[[logs]]\nname = "one"\npath = "one.swf"\nprocessors = 64\n'
    )
    return (Example.of_text("campaign.toml", text),)


def _requests() -> tuple[Example, ...]:
    text = (
        "nodes {m[1-4]}\nbusy {m1} until 90s\nslot 10s\ngpu = {m1, m2}\n"
        "one = max(nCk(gpu, 2, 0, 2h, 4), nCk(gpu, k=2, s=0, dur=3h, v=3))\n"
    )
    return (Example.of_text("requests.strl", text),)


_FURTHER: Final[Mapping[str, tuple[Callable[[], tuple[Example, ...]], Read]]] = {
    "log converted": (_logs, _converted),
    "workload folder": (_folders, lambda path, _: load_workload(path)),
    "jobs": (
        _jobs_files,
        lambda path, _: read_jobs(path, empty_room(4.0, 2.0**40, 4.0), path.parent),
    ),
    "intensity": (_intensities, lambda path, _: read_intensity(path, 1_711_800_000.0, None)),
    "intensity repeated": (_intensities, lambda path, _: read_intensity(path, 0.0, Repeat.DAILY)),
    "transient types": (_types, lambda path, _: read_types(path)),
    "transient machines": (_kinds, lambda path, _: read_kinds(path)),
    "transient plan": (_plans, lambda path, _: read_plan(path)),
    "schedule": (_schedules, lambda path, _: read_schedule(path)),
    "campaign": (_campaigns, lambda path, _: read_campaign(path)),
    "requests": (_requests, lambda path, _: read_strl(path)),
}
