"""Small files of the layouts that readers and price sources of the product read."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import polars as pl

from foresail.model.registry import Example
from foresail.traces import folder
from foresail.traces.measured import tasks_table, usage_table
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table

_DOCUMENT_EXAMPLE: Final = """\
currency = "EUR"
date = 2026-03-01
provider = "own"

[[offer]]
instance_type = "c4"
cores = 4
memory_gib = 16
on_demand = 0.2
transient = 0.06

[sustained_use]
tiers = [1.0, 0.8]

[customised]
core_per_hour = 0.03
gib_per_hour = 0.004

[[discount]]
share = 0.1
instances = "c*"
options = ["on-demand"]

[[commitment]]
instance = "c4"
count = 2
price_per_hour = 0.1
until = 2027-01-01
"""
_TABLE_EXAMPLE: Final = """\
instance_type,cores,memory_gib,on_demand,reserved_1y,transient,availability,currency,date
c4,4,16,0.2,0.12,0.06,0.9,EUR,2026-03-01
c8,8,32,0.4,0.24,,,EUR,2026-03-01
"""
_RESERVED_EXAMPLE: Final = """\
instance_type,family,vcpu,memory_gib,gpu,region,ondemand_usd_h,yrTerm1Standard.noUpfront
m1.small,General purpose,1,1.7,0,us-east-1,0.044,0.028
m1.large,General purpose,2,7.5,0,us-east-1,0.175,
"""
_SPOT_EXAMPLE: Final = """\
instance-type,arch,memory,vCPU,GPU,region,ondemand,spot_avg
c5d.2xlarge,x86_64,16.0,8,0,af-south-1,0.52,0.13
c5d.4xlarge,x86_64,32.0,16,0,af-south-1,1.04,0.26
"""
_HISTORY_EXAMPLE: Final = """\
timestamp,az,instance_type,os,spot_price,on_demand_price
2015-03-11 00:00:00+00:00,us-east-1a,small,Linux,0.1,0.2
2015-03-11 06:00:00+00:00,us-east-1a,small,Linux,0.3,0.2
2015-03-12 00:00:00+00:00,us-east-1a,small,Linux,0.15,0.2
"""
_SERIES_EXAMPLE: Final = '{"metadata": {"gap_seconds": 300}, "data": [0, 1, 1, 0]}'
_SWF_EXAMPLE: Final = """\
; Version: 2.2
; UnixStartTime: 820454400
; TimeZoneString: Europe/Prague
; MaxProcs: 8
; Note: a small log
;   of two days
1 0 5 60 2 -1 -1 2 120 2048 1 3 1 -1 1 -1 -1 -1
2 5 9 30.5 4 12.5 100 4 60 -1 0 4 1 2 1 1 1 10
3 9 -1 -1 -1 -1 -1 1 60 409600 5 4 1 2 1 1 -1 -1 {node1} batch 1:ppn=2
"""
_JOBS_EXAMPLE: Final = """\
JobID,Submit,Start,End,Limit,Cores,State,JobName
17,2024-03-01T10:00:00,2024-03-01T10:00:05,2024-03-01T11:00:05,90,4,COMPLETED,fit
18,2024-03-01T10:02:00,2024-03-01T10:03:00,2024-03-01T10:04:00,5,1,TIMEOUT,"sort, all"
"""
_MAPPING: Final = """\
[table]
delimiter = ","
null = ["NA"]
processors = 64

[columns]
job_id = "JobID"
submit_seconds = { column = "Submit", time = "%Y-%m-%dT%H:%M:%S", zone = "Europe/Paris" }
runtime_seconds = { column = "End", since = "Start", time = "%Y-%m-%dT%H:%M:%S" }
requested_seconds = { column = "Limit", unit = "minutes" }
tasks = { column = "Cores" }
cpus_per_task = { constant = 1 }
status = { column = "State", values = { COMPLETED = "completed", TIMEOUT = "failed" } }

[features]
application = "JobName"
"""


def _document() -> tuple[Example, ...]:
    return (
        Example.of_text("own.toml", _DOCUMENT_EXAMPLE),
        Example.of_text("own.json", json.dumps(tomllib.loads(_DOCUMENT_EXAMPLE), default=str)),
    )


def _series() -> tuple[Example, ...]:
    series = _SERIES_EXAMPLE.encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for zone in ("us-west-2a", "us-west-2b"):
            member = tarfile.TarInfo(f"4-node/aws-08-03-2023/{zone}_v100_1.json")
            member.size = len(series)
            archive.addfile(member, io.BytesIO(series))
    return (
        Example.of_text("us-west-2a_v100_1.json", _SERIES_EXAMPLE),
        Example({"traces.tar": packed.getvalue()}, "traces.tar"),
    )


def _swf() -> tuple[Example, ...]:
    machines = "1\tzewura\t1\t80\t1.0\t529426432\n2\tmudrc\t4\t8\t1.0\t16777216\n"
    alone = Example.of_text("log.swf", _SWF_EXAMPLE)
    files = {**alone.files, "log.swf.machines": machines.encode()}
    return (alone, Example(files, "log.swf"))


def _canonical() -> tuple[Example, ...]:
    jobs = {
        "job_id": ["a", "b", "c"],
        "submit_seconds": [0.0, 5.0, 5.0],
        "tasks": [1, 2, 1],
        "runtime_seconds": [60.0, 30.5, None],
        "requested_seconds": [120.0, None, 60.0],
        "user": ["ann", "bob", None],
    }
    tasks = tasks_table({"job_id": ["a"], "task": [0], "runtime_seconds": [60.0]})
    usage = usage_table(
        {"job_id": ["a"], "task": [0], "start_seconds": [0.0], "end_seconds": [9.0]}
    )
    meta = WorkloadMeta("tiny", "hand", 4, header={"Note": "none"}, repairs={"dropped": 1})
    workload = Workload(jobs_table(jobs), meta, tasks=tasks, usage=usage)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "workload"
        folder.write_folder(workload, path)
        return (Example({each.name: each.read_bytes() for each in sorted(path.iterdir())}),)


def _table() -> tuple[Example, ...]:
    table = io.BytesIO()
    pl.read_csv(_JOBS_EXAMPLE.encode()).write_parquet(table)
    mapping = _MAPPING.encode()
    text = {"jobs.csv": _JOBS_EXAMPLE.encode(), "mapping.toml": mapping}
    parquet = {"jobs.parquet": table.getvalue(), "mapping.toml": mapping}
    options = {"mapping": "mapping.toml"}
    return (Example(text, "jobs.csv", options), Example(parquet, "jobs.parquet", options))


def _text(name: str, text: str) -> Callable[[], tuple[Example, ...]]:
    return lambda: (Example.of_text(name, text),)


EXAMPLES: Final[Mapping[str, Callable[[], tuple[Example, ...]]]] = {
    "SwfReader": _swf,
    "CanonicalReader": _canonical,
    "TableReader": _table,
    "PriceDocument": _document,
    "PriceTable": _text("own.csv", _TABLE_EXAMPLE),
    "Ec2ReservedTable": _text("reserved-2017-11.csv", _RESERVED_EXAMPLE),
    "Ec2SpotTable": _text("spot-2024-04.csv", _SPOT_EXAMPLE),
    "Ec2SpotHistory": _text("history.csv", _HISTORY_EXAMPLE),
    "SkyPilotTraces": _series,
}
"""By the name of its class; a plug-in of others may show its own by ``examples``."""
