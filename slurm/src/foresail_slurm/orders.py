"""Orders to Slurm that hold jobs and let them go, which take an operator's rights.

What is held here is marked in a file: ``foresail:`` and how often the job had been requeued by
then, or ``foresail:kept`` where a person wishes it held. A plug-in of Slurm's that holds jobs as
they are submitted writes ``foresail`` into their ``AdminComment``, which users cannot. Any other
hold is nobody's here to lift.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from foresail.model.cluster import Placement
from foresail.model.errors import InputError
from foresail.model.whole_files import write_durably
from foresail_slurm.commands import LifeRow, environment, output, read_lives

_MARK: Final = "foresail"
_KEPT: Final = f"{_MARK}:kept"
_SECONDS: Final = 20.0
_NOT_TAKEN: Final = re.compile(
    "denied|invalid user id|contact|unexpected message|timed out|refused", re.IGNORECASE
)
_NO_RIGHTS: Final = re.compile("denied|invalid user id", re.IGNORECASE)
RIGHTS: Final = "an operator of Slurm's: sacctmgr add user NAME account=... AdminLevel=Operator"

ALIVE: Final = "slurm-alive"
"""Name of the file, in the folder of attempts, that a service touches as long as it works."""

_SILENT_SECONDS: Final = 45.0
"""Time without a sign of life after which a service counts as dead."""

_EVERY_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = 5.0
"""So often jobs are let go that a plug-in of Slurm's still holds for a dead service."""


class Order(NamedTuple):
    """An order to ``scontrol``, or none, and the mark that a job (or array) has from then on."""

    text: str
    job_id: str = ""
    mark: str | None = None


class Marks:
    """Marks of the jobs that are held here, in a file that outlives the service."""

    def __init__(self, attempts: Path) -> None:
        self._file = attempts / "slurm-held"
        self._marks: dict[str, str] = {}
        with suppress(FileNotFoundError):
            self._marks = json.loads(self._file.read_text())

    def on(self, life: LifeRow) -> LifeRow:
        """Return where a job stands, with its mark in the place of the comment that Slurm has."""
        base, _, _ = life.JobArrayID.partition("_")
        of_array = self._marks.get(base, life.admin_comment)
        return life._replace(admin_comment=self._marks.get(life.JobArrayID, of_array))

    def forget_all_but(self, job_ids: Iterable[str]) -> None:
        """Forget what has gone."""
        there = {name for each in job_ids for name in (each, each.partition("_")[0])}
        self._marks = {name: mark for name, mark in self._marks.items() if name in there}

    def carry_out(self, orders: Sequence[Order]) -> None:
        """Note the marks of orders, and give these to one ``scontrol``; jobs may have gone.

        Raises ``ConnectionError`` if Slurm does not answer, or takes no orders from this account.
        """
        marks = {each.job_id: each.mark for each in orders if each.mark is not None}
        if not marks.items() <= self._marks.items():
            self._marks |= marks
            write_durably(self._file, json.dumps(self._marks).encode())
        text = "".join(f"{each.text}\n" for each in orders if each.text)
        if text:
            _give(text)


def _give(text: str) -> None:
    given, env = text.encode(), environment()
    try:
        done = subprocess.run(
            ["scontrol"], input=given, capture_output=True, env=env, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConnectionError(f"scontrol: {str(error)[-200:]}") from error
    said = done.stderr.decode("utf-8", "replace")
    if _NOT_TAKEN.search(said):
        raise ConnectionError(f"scontrol: {said.splitlines()[0][:200]}")


def ask(words: Sequence[str]) -> str:
    """Give one order to ``scontrol``; returns why it was refused, nothing if it was taken.

    Raises ``ConnectionError`` if Slurm does not answer, ``InputError`` if it takes no orders from
    this account.
    """
    try:
        output(["scontrol", *words], _SECONDS)
    except InputError as error:
        if _NO_RIGHTS.search(str(error)):
            raise InputError(str(error), expected=RIGHTS) from error
        if _NOT_TAKEN.search(str(error)):
            raise ConnectionError(str(error)) from error
        return error.problem
    return ""


def cancel(job_id: str) -> None:
    """Cancel a job; one that has gone is left so. Raises as ``Marks.carry_out``."""
    try:
        output(["scancel", job_id])
    except InputError as error:
        if _NOT_TAKEN.search(str(error)):
            raise ConnectionError(str(error)) from error


def hold_all(lives: Iterable[LifeRow], waiting: Iterable[str]) -> Iterator[Order]:
    """Yield orders that hold jobs; one for an array, where it is for all of its tasks that wait."""
    tasks = Counter(base for base, _, task in (each.partition("_") for each in waiting) if task)
    groups: dict[tuple[str, str], list[str]] = {}
    for life in lives:
        base, _, _ = life.JobArrayID.partition("_")
        groups.setdefault((base, life.RestartCnt), []).append(life.JobArrayID)
    for (base, restarts), job_ids in groups.items():
        for job_id in [base] if 1 < len(job_ids) == tasks[base] else job_ids:
            text = f"{_update(job_id)} Priority=0 ReqNodeList={_now(restarts)}"
            yield Order(text, job_id, f"{_MARK}:{restarts}")


def start(life: LifeRow, placement: Placement) -> Iterator[Order]:
    """Yield the orders that let a held job go, to the nodes that were chosen for it, if any."""
    nodes = ",".join(dict.fromkeys(name for name, _ in placement.tasks_by_node))
    now = _now(life.RestartCnt)
    if nodes or now or life.Reason == "BadConstraints":  # those of an attempt before stand there
        yield Order(f"{_update(life.JobArrayID)} ReqNodeList={nodes}{now}")
    yield Order(f"release {life.JobArrayID}")


def stop(life: LifeRow) -> Order:
    """Return the order that requeues what runs, and holds it here; what has ended stays so."""
    mark = f"{_MARK}:{int(life.RestartCnt) + 1}"
    return Order(f"requeuehold Incomplete {life.JobArrayID}", life.JobArrayID, mark)


def let_go(life: LifeRow) -> Iterator[Order]:
    """Yield the orders that leave a held job to Slurm, as if it had never been held."""
    if names_nodes(life):
        yield Order(f"{_update(life.JobArrayID)} ReqNodeList={_now(life.RestartCnt)}")
    yield Order(f"release {life.JobArrayID}", life.JobArrayID, "")


def keep(life: LifeRow, *, is_wished: bool) -> Order:
    """Return the mark by which a held job is kept so as a person wishes, or no longer."""
    return Order("", life.JobArrayID, _KEPT if is_wished else f"{_MARK}:{life.RestartCnt}")


def change_limit(job_id: str, seconds: float | None) -> Order:
    """Return the order that changes the limit of a job, in whole minutes."""
    limit = "UNLIMITED" if seconds is None else str(max(1, round(seconds / 60.0)))
    return Order(f"{_update(job_id)} TimeLimit={limit}")


def is_held(life: LifeRow) -> bool:
    """Return whether a job is held, by whomever."""
    return life.StateCompact == "PD" and life.PriorityLong == "0"


def is_held_here(life: LifeRow) -> bool:
    """Return whether a job is held, and that by no one else."""
    return is_held(life) and (life.admin_comment.split(" ")[0] == _MARK or _is_marked(life))


def was_let_go(life: LifeRow) -> bool:
    """Return whether a job that was held here is held no more."""
    return not is_held(life) and _is_marked(life)


def _is_marked(life: LifeRow) -> bool:
    """Return whether a job was held here since it was last requeued."""
    return life.admin_comment in (_KEPT, f"{_MARK}:{life.RestartCnt}")


def is_kept(life: LifeRow) -> bool:
    """Return whether a job is held as a person wishes."""
    return life.admin_comment == _KEPT


def names_nodes(life: LifeRow) -> bool:
    """Return whether nodes that a job asks for may have been chosen here."""
    return life.admin_comment.startswith(f"{_MARK}:")


def release_all(state: Path, *, is_tried: bool = False) -> list[str]:
    """Let go of all that is held here, but for what a person wishes held; returns their ids.

    Nothing is changed if it is only tried. Raises ``InputError`` if Slurm does not answer or no
    service has worked in this folder, ``ConnectionError`` if Slurm takes no orders.
    """
    marks = Marks(_attempts(state))
    held = [each for each in map(marks.on, read_lives()) if is_held_here(each)]
    held = [each for each in held if not is_kept(each)]
    if held and not is_tried:
        marks.carry_out([order for each in held for order in let_go(each)])
    return [each.JobArrayID for each in held]


def set_site_factors(wanted: Mapping[str, int], *, is_tried: bool = False) -> dict[str, int]:
    """Set by how much jobs that wait go ahead, beside what else Slurm orders them by.

    Returns what was another before, by id of the job or array; nothing is changed if it is only
    tried. Raises ``InputError`` if Slurm does not answer or does not order by several factors,
    ``ConnectionError`` if it takes no orders.
    """
    known = dict(
        re.findall(r"^(\d+)\|(-?\d+)$", output(["sprio", "-h", "-o", "%i|%S"]), re.MULTILINE)
    )
    by_array = {job_id.partition("_")[0]: factor for job_id, factor in wanted.items()}
    changed = {each: n for each, n in by_array.items() if each in known and int(known[each]) != n}
    if changed and not is_tried:
        _give("".join(f"{_update(each)} SiteFactor={n}\n" for each, n in changed.items()))
    return changed


def watch(state: Path, say: Callable[[str], None]) -> None:
    """Watch over a service by the folder of its state, for ever; says what it does.

    Raises ``InputError`` if there is no such folder.
    """
    for silent_seconds in _silences(_attempts(state) / ALIVE):
        if silent_seconds < _SILENT_SECONDS:
            time.sleep(_EVERY_SECONDS)
            continue
        try:
            released = release_all(state)
        except (ConnectionError, InputError) as error:
            say(f"the service is silent, and its holds cannot be lifted: {error}")
        else:
            if released:
                say(f"silent for {silent_seconds:.0f} s: let go of {', '.join(released)}")
        time.sleep(_AGAIN_SECONDS)


def _attempts(state: Path) -> Path:
    folder = state / "attempts"
    if not folder.is_dir():
        raise InputError("no service has worked here", source=state, expected="its folder of state")
    return folder


def _silences(alive: Path) -> Iterator[float]:
    """Yield since when (seconds) there has been no sign of life; it counts from the first on."""
    last, since = -1, time.monotonic()
    while True:
        try:
            sign = alive.stat().st_mtime_ns
        except FileNotFoundError:
            sign = -1
        if sign != last:
            last, since = sign, time.monotonic()
        yield time.monotonic() - since


def _now(restarts: str) -> str:
    """Return what lets a requeued job begin at once, not two minutes later."""
    return "" if restarts == "0" else " StartTime=now"


def _update(job_id: str) -> str:
    return f"update JobId={job_id}"
