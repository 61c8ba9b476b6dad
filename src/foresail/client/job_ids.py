"""Ids of jobs as people type them: ``17``, ``18_3``, ``18_[1-3,7]``, several with commas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from foresail.model.errors import InputError

_WORD: Final = re.compile(r"(\d{1,18})(?:_(\d{1,9}|\[[^\]]*\]))?")
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::([1-9]\d{0,8}))?)?")
_MOST: Final = 10_000
_WIDEST: Final = 24


def job_ids(words: Iterable[str]) -> list[str]:
    """The ids that words mean, each once; that of an array stands for its members."""
    separated = (each for word in words for each in re.split(r",(?![^\[]*\])", word))
    return list(dict.fromkeys(job_id for each in separated for job_id in _ids(each)))


def _ids(word: str) -> Iterator[str]:
    found = _WORD.fullmatch(word)
    if found is None:
        raise _no_id(word)
    number, member = found.groups()
    if member is None or not member.startswith("["):
        yield word
        return
    indices: list[int] = []
    for part in member[1:-1].partition("%")[0].split(","):
        of = _RANGE.fullmatch(part)
        if of is None:
            raise _no_id(word)
        some = range(int(of[1]), int(of[2] or of[1]) + 1, int(of[3] or 1))
        if not some or len(indices) + len(some) > _MOST:
            raise _no_id(word)
        indices += some
    yield from (f"{number}_{index}" for index in indices)


def _no_id(word: str) -> InputError:
    return InputError(
        "no id of a job", field="JOB", value=word, expected="17, or of an array 18, 18_3, 18_[1-3]"
    )


def together(members: Sequence[str]) -> str:
    """Members of an array as one word, such as ``18_[1-3,7]``; cut where that is long."""
    number = members[0].partition("_")[0]
    indices = sorted(int(each.partition("_")[2]) for each in members)
    parts: list[list[int]] = []
    for index in indices:
        if parts and index == parts[-1][-1] + 1:
            parts[-1][1:] = [index]
        else:
            parts.append([index])
    text = ",".join("-".join(map(str, part)) for part in parts)
    if len(text) > _WIDEST:
        text = text[:_WIDEST].rpartition(",")[0] + ",..."
    return f"{number}_[{text}]"
