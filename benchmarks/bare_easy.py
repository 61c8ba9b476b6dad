"""A bare EASY replay over ten arrays: the yardstick of what a kernel of some size takes to compile.

It is never run. Nothing of Foresail is in it, so that it stays what it is.
"""

from __future__ import annotations

from typing import Any, Final

from numba import types

_FLOATS: Final = types.float64[::1]
_INTEGERS: Final = types.int64[::1]

TYPES: Final = (_FLOATS,) * 6 + (_INTEGERS,) * 4 + (types.float64,)
"""What ``bare_easy`` takes."""


def bare_easy(
    submit: Any,
    runtime: Any,
    estimate: Any,
    width: Any,
    start: Any,
    release: Any,
    queue: Any,
    running: Any,
    counts: Any,
    order: Any,
    processors: Any,
) -> float:
    """Start jobs in order of arrival, and later ones that do not delay the first; mean wait."""
    free = processors
    waiting, holding, arrived = 0, 0, 0
    waited = 0.0
    while arrived < submit.size or waiting > 0:
        now = release[0] if holding > 0 else submit[arrived]
        if arrived < submit.size:
            now = min(now, submit[arrived])
        while holding > 0 and release[0] <= now:
            free += width[running[0]]
            holding -= 1
            for at in range(holding):
                release[at] = release[at + 1]
                running[at] = running[at + 1]
        while arrived < submit.size and submit[arrived] <= now:
            queue[waiting] = order[arrived]
            waiting += 1
            arrived += 1
        shadow, extra = now, free
        if waiting > 0 and width[queue[0]] > free:
            for at in range(holding):
                shadow = release[at]
                extra += width[running[at]]
                if extra >= width[queue[0]]:
                    break
            extra -= width[queue[0]]
        kept = 0
        for at in range(waiting):
            job = queue[at]
            fits = width[job] <= free
            if fits and kept > 0:
                fits = now + estimate[job] <= shadow or width[job] <= extra
            if not fits:
                queue[kept] = job
                kept += 1
                continue
            free -= width[job]
            start[job] = now
            waited += now - submit[job]
            place = holding
            while place > 0 and release[place - 1] > now + runtime[job]:
                release[place] = release[place - 1]
                running[place] = running[place - 1]
                place -= 1
            release[place] = now + runtime[job]
            running[place] = job
            holding += 1
        waiting = kept
        counts[0] += 1
    return float(waited / max(submit.size, 1))
