"""STRL as text: expressions as the paper prints them, and files of requests that stand alone.

::

    nodes {m[1-4]}                     # what there is; all nodes that are mentioned, if left out
    busy {m1} until 90s                # running jobs
    slot 10s                           # length of a slot of the plan
    gpu = {m1, m2}
    all = gpu + {m3, m4}
    job1 = max(nCk(gpu, 2, 0, 2h, 4), nCk(all, k=2, s=0, dur=3h, v=3))

Names are defined before they are used. What no other expression uses is a request.
Source: Tumanov et al., TetriSched (EuroSys 2016), section 4; spec tetrisched section 4.1.
"""

from __future__ import annotations

from pathlib import Path

from foresail.model.documents import text_of
from foresail.strl.document import Document, Reading
from foresail.strl.parser import Parser


def parse(text: str, source: object | None = None) -> Document:
    """What a file of requests says.

    Raises
    ------
    InputError
        With line and column of the first thing that is wrong, what was found and what expected.
    """
    reading = examine(text, source)
    if reading.errors:
        raise reading.errors[0]
    return reading.document


def read(path: Path) -> Document:
    """What the file at this path says.

    Raises
    ------
    InputError
        If it cannot be read, or as ``parse`` does.
    """
    return parse(text_of(path), path)


def examine(text: str, source: object | None = None) -> Reading:
    """What a file of requests says, with every statement's first error instead of only one."""
    return Parser(text, source).reading()
