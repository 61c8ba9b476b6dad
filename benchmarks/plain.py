"""The same replay as ``benchmarks.yardstick``, slow and obvious: lists, sorted when needed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class _Machine:
    free: float
    running: list[tuple[float, int, int]] = field(default_factory=list)
    """(real end, number of the start, job) of every running job."""


def replay(
    submit: list[float],
    runtime: list[float],
    width: list[float],
    planned: list[float],
    processors: float,
    *,
    shortest_first: bool,
) -> list[float]:
    """Start times (seconds, one per job in order of submission)."""
    start: list[float] = [math.nan] * len(submit)
    machine = _Machine(processors)
    queue: list[int] = []
    submitted = started = 0

    def one_pass(now: float) -> None:
        nonlocal started
        held = [(start[job] + planned[job], job) for _, _, job in machine.running]
        free = machine.free + sum(width[job] for end, job in held if end <= now)
        releases = [(end, width[job]) for end, job in held if end > now]

        def begin(job: int) -> None:
            nonlocal free, started
            start[job] = now
            machine.running.append((now + runtime[job], started, job))
            machine.free -= width[job]
            free -= width[job]
            started += 1
            releases.append((now + planned[job], width[job]))

        while queue and width[queue[0]] <= free:
            begin(queue.pop(0))
        if not queue:
            return
        head = queue[0]
        shadow, extra, available = math.inf, 0.0, free
        for end in sorted({end for end, _ in releases}):
            available += sum(cpus for other, cpus in releases if other == end)
            if available >= width[head]:
                shadow, extra = end, available - width[head]
                break
        candidates = queue[1:]
        if shortest_first:
            candidates.sort(key=lambda job: planned[job])
        for job in candidates:
            if width[job] > free:
                continue
            if now + planned[job] > shadow:
                if width[job] > extra:
                    continue
                extra -= width[job]
            begin(job)
            queue.remove(job)

    while submitted < len(submit) or machine.running:
        first = min(machine.running, default=(math.inf, 0, 0))
        if submitted < len(submit) and submit[submitted] <= first[0]:
            now = submit[submitted]
            queue.append(submitted)
            submitted += 1
        else:
            now, _, job = first
            machine.running.remove(first)
            machine.free += width[job]
        one_pass(now)
    return start
