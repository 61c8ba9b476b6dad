"""Job scripts: a shell or Python script whose first comments say what the job asks for.

``#FORESAIL`` lines take the options of ``foresail submit``, ``#SBATCH`` lines those of Slurm that
mean the same here. What would be lost is refused, with its line, rather than passed over.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from foresail.model.documents import text_of
from foresail.model.errors import InputError

_Field: TypeAlias = Callable[[str], dict[str, Any]]
"""The field that an option's value becomes."""
_Option: TypeAlias = tuple[int, str, str | None, _Field]

_DIRECTIVE: Final = re.compile(r"#(FORESAIL|SBATCH)\s+(.*)")
_INTERPRETERS: Final = re.compile(r"(ba|da|k|z)?sh|python[0-9.]*")
_SLURM_TIME: Final = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")
_SIZES: Final = {"K": "KiB", "M": "MiB", "G": "GiB", "T": "TiB"}


def read_script(path: Path) -> dict[str, Any]:
    """The job of a script file: its text as the command, and what its directives ask for.

    Raises
    ------
    InputError
        If the file cannot be read, names no shell or Python to run it, or asks for what there is
        not; names the line.
    """
    return job_of_script(text_of(path), path)


def job_of_script(text: str, source: object) -> dict[str, Any]:
    """As ``read_script``, of a text from elsewhere."""
    lines = text.splitlines()
    interpreter = _interpreter(lines[0] if lines else "", source)
    job: dict[str, Any] = {}
    if isinstance(source, PurePath):
        job["name"] = re.sub(r"[^A-Za-z0-9_.+-]", "_", source.name)
    on_one_node: _Option | None = None
    for asked in _options(lines, source):
        _, option, value, field = asked
        try:
            job.update(_asked(option, value, field))
        except ValueError as error:
            raise _not_here(asked, str(error), source) from error
        if field is _one_node:
            on_one_node = asked
    if on_one_node is not None and job.get("tasks", 1) > 1:
        raise _not_here(on_one_node, _ONE_NODE, source)
    return {**job, "command": [*interpreter, "-c", text]}


def _not_here(asked: _Option, expected: str, source: object) -> InputError:
    number, option, value, _ = asked
    return InputError(
        "cannot be asked for",
        source=source,
        line=number,
        field=option,
        value=value,
        expected=expected,
    )


def _interpreter(first: str, source: object) -> list[str]:
    if not first.startswith("#!"):
        return ["/bin/sh"]
    words = shlex.split(first[2:])
    program = [word for word in words if PurePath(word).name != "env"][:1]
    if not program or not _INTERPRETERS.fullmatch(PurePath(program[0]).name):
        raise InputError(
            "is run by no shell and no Python",
            source=source,
            line=1,
            value=first,
            expected="#!/bin/sh or the like; else submit its command: foresail submit -- ./script",
        )
    return words


def _options(lines: list[str], source: object) -> Iterator[_Option]:
    """Line number, option, value and meaning of every directive before the first command."""
    for number, line in enumerate(lines, 1):
        found = _DIRECTIVE.match(line)
        if found is None:
            if line.strip() and not line.startswith("#"):
                return
            continue
        try:
            words = shlex.split(found[2], comments=True)
        except ValueError as error:
            raise InputError(
                f"cannot be read: {error}", source=source, line=number, value=line
            ) from error
        yield from _of_words(words, found[1], number, source)


def _of_words(words: list[str], family: str, number: int, source: object) -> Iterator[_Option]:
    known = _FORESAIL if family == "FORESAIL" else _SLURM
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            raise InputError(
                "not an option", source=source, line=number, value=word, expected="--option=value"
            )
        if not word.startswith("--") and len(word) > 2:
            name, equals, value = word[:2], "=", word[2:].removeprefix("=")
        if name not in known:
            raise InputError(
                "there is no such option here",
                source=source,
                line=number,
                value=name,
                expected=_INSTEAD.get(name, "one of " + ", ".join(sorted(known))),
            )
        if name in _ALONE:
            yield number, name, None, known[name]
        elif equals:
            yield number, name, value, known[name]
        else:
            yield number, name, next(rest, None), known[name]


def _asked(option: str, value: str | None, field: _Field) -> dict[str, Any]:
    if option in _ALONE:
        return field("")
    if not value:
        raise ValueError("a value")
    return field(value)


def _plain(name: str) -> _Field:
    return lambda value: {name: value}


def _whole(name: str) -> _Field:
    def field(value: str) -> dict[str, Any]:
        if not value.isascii() or not value.isdigit():
            raise ValueError("a whole number")
        return {name: int(value[:10])}

    return field


def _time(value: str) -> dict[str, Any]:
    """Slurm's minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]."""
    found = _SLURM_TIME.fullmatch(value)
    if found is None:
        raise ValueError("a time as sbatch takes it, such as 2:30:00 or 1-12")
    days, *given = found.groups()
    first, second, third = (0 if each is None else int(each) for each in given)
    if days is not None:
        seconds = int(days) * 86400 + first * 3600 + second * 60 + third
    elif given[2] is not None:
        seconds = first * 3600 + second * 60 + third
    else:
        seconds = first * 60 + second
    return {"requested_time": seconds}


def _memory(value: str) -> dict[str, Any]:
    """Slurm's megabytes, or a number with K, M, G or T."""
    number, unit = (value[:-1], value[-1].upper()) if value[-1].isalpha() else (value, "M")
    if unit not in _SIZES or not number.isdigit():
        raise ValueError("a size such as 500M or 2G")
    return {"memory": number + _SIZES[unit]}


def _one_node(value: str) -> dict[str, Any]:
    if value not in {"1", "1-1"}:
        raise ValueError(_ONE_NODE)
    return {}


def _array(value: str) -> dict[str, Any]:
    indices, limit, most = value.partition("%")
    if limit:
        raise ValueError(f"{indices} without %{most}: how many run at once cannot be limited")
    return {"array": indices}


def _dependency(value: str) -> dict[str, Any]:
    kind, _, ids = value.partition(":")
    if kind != "afterok" or not ids:
        raise ValueError("afterok:JOB[:JOB...], which is what jobs can wait for here")
    return {"after": ids.split(":")}


def _environment(value: str) -> dict[str, Any]:
    if value in {"ALL", "NONE"}:
        raise ValueError("NAME=value[,NAME=value...]: a job has the service's plain environment")
    return {"environment": dict(_assignment(word) for word in value.split(","))}


def _assignment(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise ValueError("NAME=value")
    return name, value


def _held(value: str) -> dict[str, Any]:  # noqa: ARG001 - the option has none
    return {"held": True}


_ONE_NODE: Final = "1, of one task: --ntasks and --cpus-per-task say how much a job needs"
_FORESAIL: Final[Mapping[str, _Field]] = MappingProxyType(
    {
        "--name": _plain("name"),
        "--cpus": _whole("cpus"),
        "--tasks": _whole("tasks"),
        "--memory": _plain("memory"),
        "--time": _plain("requested_time"),
        "--deadline": _plain("deadline"),
        "--after": lambda value: {"after": value.split(",")},
        "--array": _array,
        "--directory": _plain("directory"),
        "--strl": _plain("strl"),
        "--environment": _environment,
        "--hold": _held,
    }
)
_SLURM: Final[Mapping[str, _Field]] = MappingProxyType(
    {
        **dict.fromkeys(("-J", "--job-name"), _plain("name")),
        **dict.fromkeys(("-c", "--cpus-per-task"), _whole("cpus")),
        **dict.fromkeys(("-n", "--ntasks"), _whole("tasks")),
        "--mem": _memory,
        **dict.fromkeys(("-t", "--time"), _time),
        "--deadline": _plain("deadline"),
        **dict.fromkeys(("-d", "--dependency"), _dependency),
        **dict.fromkeys(("-N", "--nodes"), _one_node),
        **dict.fromkeys(("-a", "--array"), _array),
        **dict.fromkeys(("-D", "--chdir"), _plain("directory")),
        "--export": _environment,
        **dict.fromkeys(("-H", "--hold"), _held),
    }
)
_ALONE: Final = frozenset({"--hold", "-H"})
_KEPT: Final = "none: what a job writes is kept, and told by `foresail logs JOB`"
_ONE_MACHINE: Final = "none: --ntasks and --cpus-per-task say how much a job needs"
_NO_ACCOUNTS: Final = "none: there are no accounts, and nobody is sent mail"
_NO_PARTITIONS: Final = (
    "none: a job waits for all nodes that can hold it; the field `preferred` of a jobs file says "
    "where it runs best"
)
_INSTEAD: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("-o", "--output", "-e", "--error", "--open-mode"), _KEPT),
        **dict.fromkeys(("--ntasks-per-node", "--exclusive"), _ONE_MACHINE),
        **dict.fromkeys(("-p", "--partition", "-w", "--nodelist"), _NO_PARTITIONS),
        **dict.fromkeys(("-A", "--account", "--mail-type", "--mail-user", "--qos"), _NO_ACCOUNTS),
    }
)
"""Of options that many scripts have: what to do about their line."""
