"""The SWF reader again, slow and obvious: what the compiled one is compared against."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE = (0, 4, 7, 10, 11, 12, 13, 14, 15, 16)
IDS = (0, 11, 12, 13, 14, 15, 16)
STATUS = {0: "failed", 1: "completed", 2: "partial", 3: "partial", 4: "partial", 5: "cancelled"}
MEASURED = {
    "recorded_wait_seconds": 2,
    "runtime_seconds": 3,
    "memory_bytes_per_task": 9,
    "requested_seconds": 8,
    "used_cpu_seconds": 5,
    "used_memory_bytes": 6,
    "think_seconds": 17,
}
NAMED = {
    "user": 11,
    "group": 12,
    "executable": 13,
    "queue": 14,
    "partition": 15,
    "after_job_id": 16,
}


class RefusedError(Exception):
    """The log has no job, or begins with something that is none."""


def numbers(words: list[bytes]) -> list[float] | None:
    """The 18 fields, or None if they are not all there and usable."""
    if len(words) < 18 or not all(NUMBER.fullmatch(word) for word in words[:18]):
        return None
    values = [float(word) for word in words[:18]]
    if not all(map(math.isfinite, values)):
        return None
    for at in WHOLE:
        if at in IDS and words[at].isdigit() and int(words[at]) < 2**64:
            values[at] = int(words[at])
        elif values[at] != int(values[at]) or abs(values[at]) >= 2**53:
            return None
    return values if values[0] >= 0 else None


def slow_swf(text: bytes) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Jobs as canonical rows in order of submission, and the repairs."""
    rows: list[dict[str, Any]] = []
    repairs: Counter[str] = Counter()
    lines = [line for line in text.split(b"\n") if line.split()]
    lines = [line for line in lines if not line.split()[0].startswith(b";")]
    for at, line in enumerate(lines):
        values = numbers(line.split())
        if values is None:
            if at == 0:
                raise RefusedError
            repairs["dropped_malformed_line"] += 1
            continue
        status = values[10]
        repairs["unknown_for_undefined_status"] += status not in (-1, *STATUS)
        repairs["unknown_for_negative_requested_processors"] += values[7] < -1
        repairs["unknown_for_negative_allocated_processors"] += values[4] < -1
        if status in (2, 3, 4) and values[1] < 0:
            repairs["dropped_partial_execution"] += 1
            continue
        if values[1] < 0:
            repairs["dropped_without_submit"] += 1
            continue
        rows.append(row(values, line, repairs))
    if not rows:
        raise RefusedError
    first_good = next(v for line in lines if (v := numbers(line.split())) is not None)
    seen: Counter[str] = Counter()
    for job in rows:
        seen[job["job_id"]] += 1
        if seen[job["job_id"]] > 1:
            repairs["renamed_duplicate_id"] += 1
            job["job_id"] += f"#{seen[job['job_id']]}"
    latest = -math.inf
    for job in rows:
        repairs["sorted_by_submit"] += job["submit_seconds"] < latest
        latest = max(latest, job["submit_seconds"])
    if first_good[1] >= 5e8:
        origin = min(job["submit_seconds"] for job in rows)
        for job in rows:
            job["submit_seconds"] -= origin
    return sorted(rows, key=lambda job: job["submit_seconds"]), +repairs


def row(values: list[float], line: bytes, repairs: Counter[str]) -> dict[str, Any]:
    """One job line as a canonical row."""
    job: dict[str, Any] = {"job_id": str(int(values[0])), "submit_seconds": values[1]}
    for name, at in MEASURED.items():
        value = None if values[at] == -1 else values[at]
        if value is not None and value < 0:
            repairs[f"unknown_for_negative_{name}"] += 1
            value = None
        if name == "runtime_seconds" and value is not None and value > 1e10:
            repairs["unknown_for_impossible_runtime_seconds"] += 1
            value = None
        if name == "requested_seconds" and value == 0:
            repairs["unknown_for_zero_requested_seconds"] += 1
            value = None
        if value is not None and name.endswith(("bytes", "bytes_per_task")):
            value *= 1024
        job[name] = value
    allocated, requested = values[4], values[7]
    job["tasks"] = next((int(n) for n in (requested, allocated) if n > 0), None)
    if job["tasks"] is not None and job["tasks"] > 10**9:
        repairs["unknown_for_impossible_tasks"] += 1
        job["tasks"] = None
    job["cpus_per_task"] = 1.0
    job["allocated_cpus"] = allocated if allocated > 0 else None
    job["status"] = STATUS.get(int(values[10]))
    for name, at in NAMED.items():
        job[name] = str(int(values[at])) if values[at] >= 0 else None
    rest = line.split(None, 18)[18:]
    job["extra"] = rest[0].rstrip().decode() if rest and rest[0].rstrip() else None
    return job
