"""Meaning of the words behind ``foresail submit``, and comments of the script they name."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from foresail.client.job_options import Asked, Memory, asked_by, own_variables
from foresail.live.jobs_file import FILE_SUFFIXES, raw_jobs
from foresail.model.documents import text_of
from foresail.model.errors import InputError

_DIRECTIVE: Final = re.compile(r"#(?:FORESAIL|SBATCH)(?:\s+(.*))?")


def asked_by_script(text: str, source: object) -> Asked:
    """Return what the ``#SBATCH`` and ``#FORESAIL`` lines before the first command ask for.

    ``late`` is set to the numbers of such lines behind it, which ask for nothing.

    Raises ``InputError`` if nothing is named that runs the script, or a line asks for what there is
    not; names it.
    """
    lines = text.splitlines()
    first = lines[0] if lines else ""
    if not first.startswith("#!") or not first[2:].strip():
        raise InputError(
            "does not look like a script",
            source=source,
            line=1,
            value=first[:80],
            expected="#! and what runs it, such as #!/bin/sh; `foresail submit -- COMMAND` else",
        )
    if "\r\n" in text:
        raise InputError("has DOS line breaks (\\r\\n)", source=source, expected="\\n alone")
    asked: Asked = {}
    for number, line in enumerate(lines, 1):
        if not line.startswith("#"):
            if line.strip():
                break
            continue
        found = _DIRECTIVE.fullmatch(line)
        if found is not None and found[1]:
            asked |= _asked_by_line(found[1], source, number)
    late = [at for at, line in enumerate(lines, 1) if at > number and _DIRECTIVE.fullmatch(line)]
    return asked | ({"late": ("", late)} if late else {})


def _asked_by_line(options: str, source: object, number: int) -> Asked:
    try:
        words = shlex.split(options, comments=True)
    except ValueError as error:
        raise InputError(
            f"cannot be read: {error}", source=source, line=number, value=options
        ) from error
    asked, rest = asked_by(words, source, number)
    if rest:
        raise InputError(
            "not an option", source=source, line=number, value=rest[0], expected="--option=value"
        )
    return asked


_AS_THEY_ARE: Final = (
    *("name", "tasks", "cpus", "gpus", "requested_time", "array", "held", "strl"),
    *("begin", "requeue", "output", "errors", "open_mode", "mail_type", "mail_user"),
)
_OF_THE_CALL: Final = ("wait", "parsable", "quiet", "test_only", "key", "late")
_LONGEST_NAME: Final = 100
_SCRIPT_SUFFIXES: Final = (".sh", ".bash", ".slurm", ".sbatch")
_SHELL_SIGNS: Final = re.compile(r"[\s;&|<>()$`*?]")


@dataclass(frozen=True, slots=True)
class AskedJobs:
    """Jobs to be submitted, with their options."""

    jobs: Sequence[Mapping[str, Any]]
    call: Mapping[str, Any]
    """What was asked of the call itself."""
    needs_one_node: bool
    """Whether several tasks are to be on one node."""


def asked_jobs(words: Sequence[str], now: float) -> AskedJobs:
    """The jobs that were typed, with what the script asks for that was named.

    What was typed wins over what the script says.

    Raises ``InputError`` if it cannot be used; names the option, and the line of the script.
    """
    asked, rest = asked_by(words)
    line = asked.pop("wrap", None)
    if line is not None and rest:
        raise InputError("is there and a command too", field="--wrap", value=rest[0])
    if line is None and len(rest) == 1 and Path(rest[0]).suffix in FILE_SUFFIXES:
        option, memory = asked.get("memory", ("", ""))
        if not isinstance(memory, str):
            raise InputError("cannot be asked of a file of jobs", field=option, expected="--memory")
        fields = _fields(asked, now)
        if "export" in asked or "variables" in asked:
            fields["environment"] = _environment(asked)
        here = str(Path.cwd())
        jobs = [{"directory": here, **job, **fields} for job in raw_jobs(Path(rest[0]))]
        return AskedJobs(jobs, _call(asked), needs_one_node=False)
    runs, said = ({"command": line[1]}, Asked()) if line is not None else _what_runs(rest)
    asked = said | asked
    job = {"directory": str(Path.cwd()), **runs, **_fields(asked, now)}
    job["environment"] = _environment(asked)
    if "directory" in asked:
        job["environment"]["SLURM_SUBMIT_DIR"] = str(Path.cwd())
    is_of_one_node = "nodes" in asked or "tasks_per_node" in asked
    return AskedJobs([job], _call(asked), is_of_one_node and job.get("tasks", 1) > 1)


def _call(asked: Asked) -> dict[str, Any]:
    return {name: asked[name][1] for name in _OF_THE_CALL if name in asked}


def _what_runs(words: Sequence[str]) -> tuple[dict[str, Any], Asked]:
    """The fields that say what is run, and what a script asks for."""
    first, *more = words or ["-"]
    if first == "--":
        return _command(more, is_told=True), {}
    path = Path(first)
    if first == "-":
        if sys.stdin.isatty():
            raise InputError("no command", expected="SCRIPT, --wrap LINE, or -- COMMAND...")
        text, source, name = sys.stdin.read(), "standard input", "sbatch"
    elif path.is_file() and _is_program(path):
        return {"command": [str(path.absolute()), *more]}, {}
    elif path.is_file() or path.suffix in _SCRIPT_SUFFIXES or "/" in first:
        text, source = text_of(path), first
        name = re.sub(r"[^A-Za-z0-9_.+-]|^[^A-Za-z0-9_]", "_", path.name)[:_LONGEST_NAME]
    else:
        return _command(words, is_told=False), {}
    return {"name": name, "script": text, "arguments": more}, asked_by_script(text, source)


def _is_program(path: Path) -> bool:
    """Return whether it is a program, and no text that an interpreter reads."""
    with path.open("rb") as file:
        return b"\0" in file.read(1024)


def _command(words: Sequence[str], *, is_told: bool) -> dict[str, Any]:
    """A program and its arguments; ``is_told``, behind ``--``, that they are that.

    Raises ``InputError`` if it would only be known when it runs that there is no such program.
    """
    if not words:
        raise InputError("no command", expected="foresail submit -- COMMAND...")
    name = words[0]
    if "/" not in name and shutil.which(name) is None:
        expected = None if is_told else "a script or a program here; behind -- it is not looked for"
        if Path(name).is_file():
            expected = f"./{name}"
        elif not name or _SHELL_SIGNS.search(name):
            expected = f"--wrap {shlex.quote(' '.join(words))}"
        if expected is not None:
            raise InputError("there is no such program", value=name, expected=expected)
    return {"command": [*words]}


def _fields(asked: Asked, now: float) -> dict[str, Any]:
    """The fields of a job that options ask for, but for its variables."""
    fields: dict[str, Any] = {name: asked[name][1] for name in _AS_THEY_ARE if name in asked}
    if "tasks_per_node" in asked:
        option, tasks = asked["tasks_per_node"]
        if fields.setdefault("tasks", tasks) > tasks:
            raise InputError(
                "fewer than all tasks", field=option, value=tasks, expected="all: there is one node"
            )
    if "memory" in asked:
        fields["memory"] = _of_each_task(asked["memory"][1], fields)
    if "deadline" in asked:
        option, at = asked["deadline"]
        if at <= now:
            raise InputError("is over", field=option, expected="a moment that is to come")
        fields["deadline"] = round(at - now, 3)
    if "directory" in asked:
        fields["directory"] = str(Path.cwd() / asked["directory"][1])
    after = [word for name in ("after", "dependencies") for word in asked.get(name, ("", ()))[1]]
    if after:
        fields["after"] = after
    return fields


def _of_each_task(memory: Memory | str, fields: Mapping[str, Any]) -> str:
    """Memory as the service is asked for it."""
    if isinstance(memory, str):
        return memory
    if memory.of == "cpu":
        return f"{memory.bytes * fields.get('cpus', 1)}B"
    return f"{memory.bytes // fields.get('tasks', 1)}B"


def _environment(asked: Asked) -> dict[str, str]:
    """The variables that a job gets: those asked for, or those by which programs are found."""
    exported = asked["export"][1] if "export" in asked else own_variables()
    return {**exported, **dict(asked.get("variables", ("", ()))[1])}
