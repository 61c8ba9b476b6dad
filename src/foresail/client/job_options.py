"""Jobs as ``foresail submit`` is asked for them: its options, its words, the script they name.

Options mean the same on the command line, on ``#SBATCH`` and on ``#FORESAIL`` lines. Those that
sbatch has mean what they mean there; what there is not here is refused, with what to do instead.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from foresail.live.jobs_file import FILE_SUFFIXES, VARIABLE, raw_jobs
from foresail.model.documents import text_of
from foresail.model.errors import InputError
from foresail.model.job import DEPENDENCY_FORM, DependencyKind, parse_dependencies
from foresail.model.words import parse_duration

_SLURM_TIME: Final = re.compile(r"(?:(\d{1,6})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?")
_SIZE: Final = re.compile(r"(\d{1,15})([KMGT]?)B?", re.IGNORECASE)
_FROM_NOW: Final = re.compile(r"now(?:\+(\d{1,9})(second|minute|hour|day|week)?s?)?")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_CLOCK_NAMES: Final = MappingProxyType(
    {"midnight": "0:00", "elevenses": "11:00", "noon": "12:00", "fika": "15:00", "teatime": "16:00"}
)
_GPUS: Final = re.compile(r"(?:gpu)?:?(\d{1,6})?")
_LEFT_BEHIND: Final = re.compile(r"FORESAIL_.*|SLURM_.*|HOME|USER|LOGNAME|SHELL|(OLD)?PWD|SHLVL|_")
"""By all of one's own: the token, what jobs have about themselves, and what an account has."""

_MOMENT_FORMS: Final = "a moment such as 6h, now+2hours, 16:30, tomorrow or 2026-12-31T08:00"


@dataclass(frozen=True, slots=True)
class _Memory:
    """An amount of memory of each cpu, or of the whole job."""

    bytes: int
    of: Literal["cpu", "job"]


def limit(value: str) -> float | None:
    """Seconds of a time limit; None for no limit.

    Digits, colons and a dash are sbatch's: minutes, minutes:seconds, hours:minutes:seconds, and
    days-hours[:minutes[:seconds]]. What has a unit (``90s``, ``30min``, ``1h30m``) is our own.
    """
    if value.upper() in {"UNLIMITED", "INFINITE", "0", "-1"}:
        return None
    found = _SLURM_TIME.fullmatch(value)
    if found is None:
        return _with_unit(value, "minutes, or a time such as 30min, 2:30:00 or 1-12")
    days, *given = found.groups()
    first, second, third = (0 if each is None else int(each) for each in given)
    if days is not None:
        seconds = int(days) * 86400 + first * 3600 + second * 60 + third
    elif given[2] is not None:
        seconds = first * 3600 + second * 60 + third
    else:
        seconds = first * 60 + second
    return float(seconds) if seconds else None


def read_as(read: Callable[[str], float | None], option: str, value: str) -> float:
    """A value of an option of another command; raises ``InputError`` if it is none."""
    expected = "one that ends"
    try:
        found = read(value)
    except ValueError as error:
        found, expected = None, str(error)
    if found is None:
        raise InputError("not usable", field=option, value=value, expected=expected)
    return found


def _with_unit(value: str, expected: str) -> float:
    if not value[-1:].isalpha():
        raise ValueError(expected)
    try:
        return parse_duration(value)
    except ValueError as error:
        raise ValueError(expected) from error


def moment(value: str, now: datetime | None = None) -> float:
    """Unix seconds of a moment as sbatch takes it, or of one that is a duration from now."""
    now = now or datetime.now().astimezone()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    value = _CLOCK_NAMES.get(value, value)
    try:
        if value in {"today", "tomorrow"}:
            at = now if value == "today" else today + timedelta(days=1)
        elif found := _FROM_NOW.fullmatch(value):
            at = now + timedelta(**{f"{found[2] or 'second'}s": int(found[1] or 0)})
        elif found := _CLOCK.fullmatch(value):
            hour, minute, second = (int(each or 0) for each in found.groups())
            at = today.replace(hour=hour, minute=minute, second=second)
            at += timedelta(days=at <= now)
        elif "-" in value:
            at = datetime.fromisoformat(value).astimezone()
        else:
            at = now + timedelta(seconds=_with_unit(value, _MOMENT_FORMS))
        return at.timestamp()
    except (ValueError, OverflowError) as error:
        raise ValueError(_MOMENT_FORMS) from error


def _size(value: str, of: Literal["cpu", "job"]) -> _Memory:
    """Slurm's megabytes, or a number with K, M, G or T; all are powers of 1024."""
    found = _SIZE.fullmatch(value)
    if found is None or not int(found[1]):
        raise ValueError("megabytes (0, all of a node, is not supported), or 500M or 2G")
    step = "KMGT".index((found[2] or "M").upper()) + 1
    return _Memory(int(found[1]) * 1024**step, of)


def _whole(value: str) -> int:
    """A number of cpus or tasks."""
    if not re.fullmatch("0*[1-9][0-9]*", value):
        raise ValueError("a whole number, at least 1")
    return int(value.lstrip("0")[:10])


def _gpus(value: str) -> int:
    """``gpu``, ``gpu:2`` or ``2``; there is one kind of them."""
    found = _GPUS.fullmatch(value)
    if found is None or not value:
        raise ValueError("gpu:N: gpus are of one kind, and there are no other resources by name")
    return int(found[1] or 1)


def _one_node(value: str) -> int:
    """The one node that a job can have."""
    if value not in {"1", "1-1"}:
        raise ValueError("1: --ntasks and --cpus-per-task say how much a job needs")
    return 1


def dependencies(value: str) -> list[str]:
    """Kinds of waiting with the jobs that are waited for, and ``singleton``."""
    if value.replace(":", "").replace("_", "").isdigit():
        value = f"{DependencyKind.AFTER_ANY}:{value}"
    words = value.split(",")
    parse_dependencies(words)
    if not all(":" in word or word == DependencyKind.SINGLETON for word in words):
        raise ValueError(DEPENDENCY_FORM)
    return words


def export(value: str) -> dict[str, str]:
    """``ALL``, ``NONE``, names of variables of one's own and ``NAME=value``, with commas."""
    words = [] if value in {"NONE", "NIL"} else value.split(",")
    sent = {
        name: content
        for name, content in os.environ.items()
        if name in words or ("ALL" in words and _is_sent(name, content))
    }
    return sent | dict(_assignment(each) for each in words if "=" in each)


def _is_sent(name: str, content: str) -> bool:
    """Return whether a variable goes with all; what is no text, no service could be sent."""
    is_of_job = name == "OMP_NUM_THREADS" and "FORESAIL_JOB_ID" in os.environ
    is_text = content.isascii() or content.encode(errors="ignore").decode() == content
    return (
        is_text
        and bool(VARIABLE.fullmatch(name))
        and not (is_of_job or _LEFT_BEHIND.fullmatch(name))
    )


def _assignment(value: str) -> tuple[str, str]:
    name, equals, content = value.partition("=")
    if not equals or not VARIABLE.fullmatch(name):
        raise ValueError("NAME=value, with a name of letters, digits and _")
    return name, content


def _key(value: str) -> str:
    if not re.fullmatch(r"[!-~]{1,200}", value):
        raise ValueError("at most 200 letters, digits and signs of ASCII")
    return value


@dataclass(frozen=True, slots=True)
class JobOption:
    """An option: what it is called, what it sets, and what makes of its value what is meant."""

    names: str
    """Names, with spaces between them."""
    sets: str
    """Setting of the option; of several options for the same one, a source can have one only."""
    says: str
    """Its line in the help."""
    form: str = ""
    """Form of its value; empty for an option that has none."""
    read: Callable[[str], Any] = str
    means: bool = True
    """Value that is set by an option without one."""
    is_gathered: bool = False
    """True if it may be repeated, each adding to what there is."""
    is_typed: bool = False
    """True if it is for the command line alone."""


Asked: TypeAlias = dict[str, tuple[str, Any]]
"""Settings: name of the option that set each, and the value."""

_TIME: Final = "It is ended after so long: minutes, 2:30:00, 1-12, or such as 90s, 30min, 2h."
_KINDS: Final = "Only after others: afterok:17:18, afterany:, afternotok:, after:, singleton."
_VARIABLES: Final = "ALL of yours, NONE, names, NAME=value. [ALL]"
_of_job, _of_cpu = partial(_size, of="job"), partial(_size, of="cpu")

OPTIONS: Final = (
    JobOption("-J --job-name --name", "name", "What jobs that are alike are called.", "NAME"),
    JobOption("-n --ntasks --tasks", "tasks", "Tasks, which start together. [1]", "N", _whole),
    JobOption("-c --cpus-per-task --cpus", "cpus", "Cpus of a task. [1]", "N", _whole),
    JobOption("-N --nodes", "nodes", "1: all tasks are on one node.", "1", _one_node),
    JobOption("--ntasks-per-node", "tasks_per_node", "Tasks, on one node.", "N", _whole),
    JobOption("--mem", "memory", "Memory of all tasks: MiB, or 4G.", "SIZE", _of_job),
    JobOption("--mem-per-cpu", "memory", "Memory of each cpu.", "SIZE", _of_cpu),
    JobOption("--memory", "memory", "Memory of each task, such as 2GiB.", "SIZE"),
    JobOption("--gres", "gpus", "Gpus of the job.", "gpu:N", _gpus),
    JobOption("-G --gpus --gpus-per-node", "gpus", "Gpus of the job.", "N", _gpus),
    JobOption("-t --time", "requested_time", _TIME, "TIME", limit),
    JobOption(
        "--deadline", "deadline", f"When it should be done: {_MOMENT_FORMS}.", "MOMENT", moment
    ),
    JobOption("-b --begin", "begin", f"It starts no earlier: {_MOMENT_FORMS}.", "MOMENT", moment),
    JobOption("-d --dependency", "dependencies", _KINDS, "KIND:JOB", dependencies),
    JobOption(
        "--after", "after", "Once this one has completed.", "JOB", re.compile(",").split, True
    ),
    JobOption(
        "-a --array", "array", "A job for each number: 0-9, 1,5,7; at most N run.", "RANGE[%N]"
    ),
    JobOption("-D --chdir --directory", "directory", "Where it runs. [here]", "FOLDER"),
    JobOption(
        "-o --output", "output", "File for what it prints: %j %A %a %x are understood.", "FILE"
    ),
    JobOption("-e --error", "errors", "File for its standard error. [with the output]", "FILE"),
    JobOption("--open-mode", "open_mode", "append or truncate these files.", "MODE"),
    JobOption("--export --environment", "export", _VARIABLES, "NAMES", export),
    JobOption(
        "--env", "variables", "A variable.", "NAME=VALUE", lambda value: [_assignment(value)], True
    ),
    JobOption("-H --hold", "held", "Keep it from starting."),
    JobOption("--mail-type", "mail_type", "When mail is sent: BEGIN, END, FAIL, ALL.", "WHEN"),
    JobOption("--mail-user", "mail_user", "To whom. [you]", "WHO"),
    JobOption("--strl", "strl", "A request in STRL.", "REQUEST"),
    JobOption("--requeue", "requeue", "It runs again if it was lost or preempted, as always."),
    JobOption("--no-requeue", "requeue", "It does not.", means=False),
    JobOption("--wrap", "wrap", "A line for sh, instead of a script.", "LINE", is_typed=True),
    JobOption("-W --wait", "wait", "Until it is done; the exit status is the job's."),
    JobOption("--parsable", "parsable", "Print the id alone, as always."),
    JobOption("-Q --quiet", "quiet", "Print no id."),
    JobOption("--test-only", "test_only", "Submit nothing: when would it start?"),
    JobOption(
        "--key", "key", "Repeated with this, it submits nothing again.", "NAME", _key, is_typed=True
    ),
)
"""All options, in the order of the help."""

_KNOWN: Final[Mapping[str, JobOption]] = MappingProxyType(
    {name: option for option in OPTIONS for name in option.names.split()}
)
_ONE_KIND: Final = "none: --ntasks and --cpus-per-task say how much a job needs"
_NO_PARTITIONS: Final = "none: there are no partitions here, leave it out"
_INSTEAD: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: instead
        for names, instead in (
            ("-A --account -q --qos --wckey --reservation", "none: there are no accounts here"),
            ("-p --partition -w --nodelist -x --exclude -C --constraint", _NO_PARTITIONS),
            ("-F --nodefile --prefer --clusters -M --cluster-constraint", _NO_PARTITIONS),
            ("--exclusive -s --oversubscribe -O --overcommit --contiguous", _ONE_KIND),
            ("--ntasks-per-core --ntasks-per-socket --threads-per-core --hint", _ONE_KIND),
            ("--sockets-per-node --cores-per-socket -B --extra-node-info -S", _ONE_KIND),
            (
                "--core-spec --thread-spec -m --distribution --mem-bind --mincpus --minnodes",
                _ONE_KIND,
            ),
            ("--cpus-per-gpu", "--cpus-per-task"),
            ("--mem-per-gpu", "--mem or --mem-per-cpu"),
            ("--gpus-per-task --gpus-per-socket --ntasks-per-gpu", "--gpus, of the whole job"),
            ("--nice --priority", "the field `worth` of a jobs file, with a deadline"),
            ("--signal", "none: SIGTERM comes at the limit, and SIGKILL after the grace"),
            ("--kill-on-invalid-dep", "none: a job that can never run is withdrawn"),
            ("-i --input", "`< FILE` in the script"),
            ("--get-user-env --export-file", "--export=ALL, or NAMES"),
        )
        for name in names.split()
    }
)
"""Options of sbatch that there are not here: what to do about them."""


def _asked_by(
    words: Sequence[str], source: object = None, line: int | None = None
) -> tuple[Asked, list[str]]:
    """Parse options before the first other word, or before ``--``; return them and the rest.

    ``--`` is the first of the rest.

    Raises ``InputError`` if there is no such option, its value cannot be used, or two say the same;
    names it, and the source and the line.
    """
    asked: Asked = {}
    left = list(words)
    while left and left[0].startswith("-") and left[0] not in {"-", "--"}:
        name, value = _taken(left)
        try:
            option = _option(name, value, is_typed=source is None)
            before, read = asked.get(option.sets, (name, None))
            if before not in option.names.split():
                raise ValueError(f"one of them: {before} is there too")
            meant = option.read(value) if value else option.means
        except ValueError as error:
            raise InputError(
                "not usable" if name in _KNOWN else "no such option here",
                source=source,
                line=line,
                field=name,
                value=value,
                expected=str(error),
            ) from error
        asked[option.sets] = name, read + meant if read and option.is_gathered else meant
    return asked, left


def _option(name: str, value: str | None, *, is_typed: bool) -> JobOption:
    """The option of a name, which takes such a value; raises ``ValueError`` with what else does."""
    option = _KNOWN.get(name)
    if option is None:
        raise ValueError(_instead(name))
    if option.is_typed and not is_typed:
        raise ValueError(f"{name} on the command line alone")
    if option.form and not value:
        raise ValueError(f"{option.form} behind it")
    if not option.form and value is not None:
        raise ValueError(f"{name} without a value")
    return option


def _taken(words: list[str]) -> tuple[str, str | None]:
    """The first option with its value, taken off the words; None if it has none."""
    word = words.pop(0)
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        given: str | None = value if equals else None
    else:
        name, given = word[:2], word[2:] or None
    option = _KNOWN.get(name)
    if option is None:
        return name, given
    if option.form:
        return name, words.pop(0) if given is None and words else given
    if given is not None and not word.startswith("--"):  # several letters in one word
        words.insert(0, f"-{given}")
        return name, None
    return name, given


def _instead(name: str) -> str:
    """Return what to write instead of an unknown option."""
    if name in _INSTEAD:
        return _INSTEAD[name]
    whole = [each for each in _KNOWN if name.startswith("--") and each.startswith(name)]
    near = whole or get_close_matches(name, _KNOWN, n=1, cutoff=0.75)
    return f"{' or '.join(near)} in full" if near else "one that `foresail submit --help` lists"


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
            "has a quote that is not closed, or ends with \\",
            source=source,
            line=number,
            value=options,
        ) from error
    asked, rest = _asked_by(words, source, number)
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
_SCRIPT_SUFFIXES: Final = (".sh", ".bash", ".slurm", ".sbatch")
_SHELL_SIGNS: Final = re.compile(r"[\s;&|<>()$`*?]")


@dataclass(frozen=True, slots=True)
class AskedJobs:
    """Jobs to be submitted, with their options."""

    jobs: Sequence[Mapping[str, Any]]
    call: Mapping[str, Any]
    """Options of the call itself."""
    needs_one_node: bool
    """True if several tasks are to be on one node."""


def asked_jobs(words: Sequence[str], now: float) -> AskedJobs:
    """The jobs that were typed, with what the script asks for that was named.

    What was typed wins over what the script says.

    Raises ``InputError`` if it cannot be used; names the option, and the line of the script.
    """
    asked, rest = _asked_by(words)
    line = asked.pop("wrap", None)
    if line is not None and rest:
        raise InputError("is there and a command too", field="--wrap", value=rest[0])
    needs_one_node = False
    if line is None and len(rest) == 1 and Path(rest[0]).suffix in FILE_SUFFIXES:
        option, memory = asked.get("memory", ("", ""))
        if not isinstance(memory, str):
            raise InputError("cannot be asked of a file of jobs", field=option, expected="--memory")
        fields = _fields(asked, now)
        if "export" in asked or "variables" in asked:
            fields["environment"] = _environment(asked)
        here = str(Path.cwd())
        jobs = [{"directory": here, **job, **fields} for job in raw_jobs(Path(rest[0]))]
    else:
        wrapped = None if line is None else ({"name": "wrap", "command": line[1]}, Asked())
        runs, said = wrapped or _what_runs(rest)
        asked = said | asked
        job = {"directory": str(Path.cwd()), **runs, **_fields(asked, now)}
        job["environment"] = _environment(asked)
        if "directory" in asked:
            job["environment"]["SLURM_SUBMIT_DIR"] = str(Path.cwd())
        is_of_one_node = "nodes" in asked or "tasks_per_node" in asked
        jobs, needs_one_node = [job], is_of_one_node and job.get("tasks", 1) > 1
    call: dict[str, Any] = {name: asked[name][1] for name in _OF_THE_CALL if name in asked}
    return AskedJobs(jobs, call, needs_one_node)


def _what_runs(words: Sequence[str]) -> tuple[dict[str, Any], Asked]:
    """The fields that say what is run, and what a script asks for."""
    first, *more = words or ["-"]
    if first == "--":
        return _command(more, is_sure=True), {}
    path = Path(first)
    if first == "-":
        if sys.stdin.isatty():
            raise InputError("no command", expected="SCRIPT, --wrap LINE, or -- COMMAND...")
        text, source, name = sys.stdin.read(), "standard input", "sbatch"
    elif path.is_file() and _is_program(path):
        return {"command": [str(path.absolute()), *more]}, {}
    elif path.is_file() or path.suffix in _SCRIPT_SUFFIXES or "/" in first:
        text, source = text_of(path), first
        name = "".join(s if s.isprintable() else "_" for s in path.name)[:100]
    else:
        return _command(words, is_sure=False), {}
    return {"name": name, "script": text, "arguments": more}, asked_by_script(text, source)


def _is_program(path: Path) -> bool:
    """Return whether it is a program, and no text that an interpreter reads."""
    with path.open("rb") as file:
        return b"\0" in file.read(1024)


def _command(words: Sequence[str], *, is_sure: bool) -> dict[str, Any]:
    """A program and its arguments; ``is_sure``, behind ``--``, that they are that.

    Raises ``InputError`` if it would only be known when it runs that there is no such program.
    """
    if not words:
        raise InputError("no command", expected="foresail submit -- COMMAND...")
    name = words[0]
    if "/" not in name and shutil.which(name) is None:
        expected = None if is_sure else "a script or a program here; behind -- it is not looked for"
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


def _of_each_task(memory: _Memory | str, fields: Mapping[str, Any]) -> str:
    """Memory as the service is asked for it."""
    if isinstance(memory, str):
        return memory
    if memory.of == "cpu":
        return f"{memory.bytes * fields.get('cpus', 1)}B"
    return f"{memory.bytes // fields.get('tasks', 1)}B"


def _environment(asked: Asked) -> dict[str, str]:
    """The variables that a job gets: those asked for, or all."""
    exported = asked["export"][1] if "export" in asked else export("ALL")
    return {**exported, **dict(asked.get("variables", ("", ()))[1])}
