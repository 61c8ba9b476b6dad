"""The options of ``foresail submit``: one table for the command line and for lines of scripts.

They mean the same on the command line, on ``#SBATCH`` and on ``#FORESAIL`` lines. Those that sbatch
has mean what they mean there; what there is not here is refused, with what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from foresail.client import option_values as values
from foresail.model.errors import InputError


@dataclass(frozen=True, slots=True)
class JobOption:
    """An option: what it is called, what it sets, and what makes of its value what is meant."""

    names: str
    """With spaces between them."""
    sets: str
    """Of several that set the same, one source can have one only."""
    says: str
    """For people."""
    form: str = ""
    """Of its value; empty for an option that has none."""
    read: Callable[[str], Any] = str
    means: bool = True
    """What is set by one that has no value."""
    is_gathered: bool = False
    """Whether it may be repeated, each adding to what there is."""
    is_typed: bool = False
    """Whether it is of the command line alone."""


Asked: TypeAlias = dict[str, tuple[str, Any]]
"""What is set, to the name of the option that set it and the value."""

_TIME: Final = "It is ended after so long: minutes, 2:30:00, 1-12, or such as 90s, 30min, 2h."
_MOMENT: Final = "6h, now+2hours, 16:30 or 2026-12-31T08:00"
_KINDS: Final = "Only after others: afterok:17:18, afterany:, afternotok:, after:, singleton."
_VARIABLES: Final = "ALL of yours, NONE, names, NAME=value. [those that programs are found by]"

OPTIONS: Final = (
    JobOption("-J --job-name --name", "name", "What jobs that are alike are called.", "NAME"),
    JobOption(
        "-n --ntasks --tasks", "tasks", "Tasks, which start together. [1]", "N", values.whole
    ),
    JobOption("-c --cpus-per-task --cpus", "cpus", "Cpus of a task. [1]", "N", values.whole),
    JobOption("-N --nodes", "nodes", "1: all tasks are on one node.", "1", values.one_node),
    JobOption("--ntasks-per-node", "tasks_per_node", "Tasks, on one node.", "N", values.whole),
    JobOption("--mem", "memory", "Memory of all tasks: MiB, or 4G.", "SIZE", values.job_memory),
    JobOption("--mem-per-cpu", "memory", "Memory of each cpu.", "SIZE", values.cpu_memory),
    JobOption("--memory", "memory", "Memory of each task, such as 2GiB.", "SIZE"),
    JobOption("--gres", "gpus", "Gpus of the job.", "gpu:N", values.gpus),
    JobOption("-G --gpus --gpus-per-node", "gpus", "Gpus of the job.", "N", values.gpus),
    JobOption("-t --time", "requested_time", _TIME, "TIME", values.limit),
    JobOption(
        "--deadline", "deadline", f"When it should be done: {_MOMENT}.", "MOMENT", values.moment
    ),
    JobOption("-b --begin", "begin", f"It starts no earlier: {_MOMENT}.", "MOMENT", values.moment),
    JobOption("-d --dependency", "dependencies", _KINDS, "KIND:JOB", values.dependencies),
    JobOption("--after", "after", "Once this one has completed.", "JOB", values.names, True),
    JobOption(
        "-a --array", "array", "A job for each number: 0-9, 1,5,7; at most N run.", "RANGE[%N]"
    ),
    JobOption("-D --chdir --directory", "directory", "Where it runs. [here]", "FOLDER"),
    JobOption("-o --output", "output", "File for what it prints: %j %A %a %x are told.", "FILE"),
    JobOption("-e --error", "errors", "File for its standard error. [with the output]", "FILE"),
    JobOption("--open-mode", "open_mode", "append or truncate these files.", "MODE"),
    JobOption("--export --environment", "export", _VARIABLES, "NAMES", values.export),
    JobOption("--env", "variables", "A variable.", "NAME=VALUE", values.assignments, True),
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
        "--key", "key", "Repeated with this, it submits nothing again.", "NAME", is_typed=True
    ),
)
"""In the order in which help tells them."""

_KNOWN: Final[Mapping[str, JobOption]] = MappingProxyType(
    {name: option for option in OPTIONS for name in option.names.split()}
)
_LEAVE_OUT: Final = "none: nothing here does its work"
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
            ("--core-spec --thread-spec -m --distribution --mem-bind --mincpus", _ONE_KIND),
            ("--cpus-per-gpu", "--cpus-per-task"),
            ("--mem-per-gpu", "--mem or --mem-per-cpu"),
            ("--gpus-per-task --gpus-per-socket --ntasks-per-gpu", "--gpus, of the whole job"),
            ("--nice --priority", "the field `worth` of a jobs file, with a deadline"),
            ("--signal", "none: SIGTERM comes at the limit, and SIGKILL after the grace"),
            ("--kill-on-invalid-dep", "none: a job that can never run is withdrawn"),
            ("-i --input", "`< FILE` in the script"),
            ("--get-user-env --export-file", "--export=ALL, or NAMES"),
            ("-k --no-kill -I --immediate --comment --profile --acctg-freq", _LEAVE_OUT),
            ("-L --licenses --tmp --bb --bbf --cpu-freq --switches --reboot", _LEAVE_OUT),
            ("--propagate --container --uid --gid --network --power --gres-flags", _LEAVE_OUT),
            ("--gpu-bind --gpu-freq --spread-job --use-min-nodes --delay-boot", _LEAVE_OUT),
            ("--minnodes --mcs-label --wait-all-nodes --ignore-pbs -v --verbose", _LEAVE_OUT),
        )
        for name in names.split()
    }
)
"""Options of sbatch that there are not here: what to do about them."""


def asked_by(
    words: Sequence[str], source: object = None, line: int | None = None
) -> tuple[Asked, list[str]]:
    """What the options before the first other word, or before ``--``, ask for; and the rest.

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
        except (ValueError, OverflowError) as error:
            raise InputError(
                "cannot be asked for",
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
    if option is None or (option.is_typed and not is_typed):
        raise ValueError(_instead(name))
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
    """What to write instead of an option that there is not."""
    if name in _INSTEAD:
        return _INSTEAD[name]
    whole = [each for each in _KNOWN if name.startswith("--") and each.startswith(name)]
    near = whole or get_close_matches(name, _KNOWN, n=1)
    return f"{' or '.join(near)} in full" if near else "one that `foresail submit --help` tells"
