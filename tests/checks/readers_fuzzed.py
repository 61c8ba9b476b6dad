"""Files that are almost right: whatever is wrong with one, its reader refuses it by name.

A reader or price source joins by being registered; with ``examples`` of its own layout
(``foresail.model.registry``) it is tried with these, else with those of all the others.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from checks.mutations import mutated
from checks.read_files import ReadFile
from foresail.live.jobs_file import InvalidJobs
from foresail.model.errors import InputError
from foresail.model.registry import Example

_SHOWN_BYTES = 400


@dataclass(frozen=True, slots=True)
class Surprise:
    """A file that was neither read nor refused as it should be, what came instead, and its content.

    ``reader`` names the kind of file, and the input can be made again by its ``number``.
    """

    reader: str
    number: int
    seen: str
    content: bytes

    def __str__(self) -> str:
        again = f"python experiments/fuzzing/fuzz.py {self.reader!r} --first {self.number}"
        return (
            f"{self.reader}, input {self.number}: {self.seen}\n  again: {again} --inputs 1\n"
            f"  file: {self.content[:_SHOWN_BYTES]!r}"
        )


def surprises(kind: ReadFile, inputs: int, first: int = 0) -> Iterator[Surprise]:
    """What goes wrong with so many spoilt files of one kind; the same ones every time.

    A file must be read whole or be an ``InputError`` that names it; no other exception, and no
    warning. The examples themselves must be read.
    """
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / str(number) for number in range(len(kind.examples))]
        given = [each.write(at) for each, at in zip(kind.examples, folders, strict=True)]
        for number in range(first, first + inputs):
            random = Random(f"{kind.name} {number}")
            at = random.randrange(len(kind.examples))
            example, folder = kind.examples[at], folders[at]
            name = _spoilt(example, random)
            content = mutated(example.files[name], random)
            (folder / name).write_bytes(content)
            seen = _seen(kind, example, folder, given[at])
            (folder / name).write_bytes(example.files[name])
            if seen is not None:
                yield Surprise(kind.name, number, seen, content)


def unread_examples(kind: ReadFile) -> Iterator[str]:
    """What is wrong with its own examples that are not read."""
    for example in () if kind.borrowed else kind.examples:
        with tempfile.TemporaryDirectory() as place:
            given = example.write(Path(place))
            try:
                kind.read(given, _options(example, Path(place)))
            except InputError as error:
                yield f"{kind.name}: {error}"


def _spoilt(example: Example, random: Random) -> str:
    """Which of the files to spoil: mostly the one that is read."""
    if example.given and random.random() < 0.7:
        return example.given
    return random.choice(sorted(example.files))


def _options(example: Example, folder: Path) -> dict[str, Any]:
    return {option: folder / name for option, name in example.options.items()}


def _seen(kind: ReadFile, example: Example, folder: Path, given: Path) -> str | None:
    """What is wrong with the outcome; None if nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kind.read(given, _options(example, folder))
    except InvalidJobs as error:
        unnamed = [each for each in error.problems if str(folder) not in str(each)]
        return f"the file is not named: {unnamed[0]}" if unnamed else None
    except InputError as error:
        return None if str(folder) in str(error) else f"the file is not named: {error}"
    except (Exception, pl.exceptions.PanicException) as error:
        return f"{type(error).__name__}: {error}"
    return None
