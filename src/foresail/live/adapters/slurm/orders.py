"""Orders to Slurm that hold jobs and let them go, which take an operator's rights.

What is held here says so in its ``AdminComment``, which users cannot write: ``foresail:`` and how
often the job had been requeued by then, or ``foresail:kept`` where a person wishes it held.
``foresail`` alone stands where a plug-in of Slurm's has held a job as it was submitted. Any other
hold is nobody's here to lift.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from foresail.live.adapters.slurm.commands import LifeRow, environment, output, read_lives
from foresail.model.cluster import Placement
from foresail.model.errors import InputError

_MARK: Final = "foresail"
_KEPT: Final = f"{_MARK}:kept"
_SECONDS: Final = 20.0
_NOT_TAKEN: Final = re.compile("denied|contact|unexpected message|timed out|refused", re.IGNORECASE)

ALIVE: Final = "slurm-alive"
"""Name of the file, in the folder of attempts, that a service touches as long as it works."""

_SILENT_SECONDS: Final = 45.0
"""Time without a sign of life after which a service counts as dead."""

_EVERY_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = 5.0
"""So often jobs are let go that a plug-in of Slurm's still holds for a dead service."""


def carry_out(orders: Sequence[str]) -> None:
    """Give orders to one ``scontrol``; those about jobs that have gone change nothing.

    Raises ``ConnectionError`` if Slurm does not answer, or takes no orders from this account.
    """
    text = "".join(f"{each}\n" for each in orders).encode()
    try:
        done = subprocess.run(
            ["scontrol"], input=text, capture_output=True, env=environment(), timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConnectionError(f"scontrol: {str(error)[-200:]}") from error
    said = done.stderr.decode("utf-8", "replace")
    if _NOT_TAKEN.search(said):
        raise ConnectionError(f"scontrol: {said.splitlines()[0][:200]}")


def cancel(job_id: str) -> None:
    """Cancel a job; one that has gone is left so. Raises as ``carry_out``."""
    try:
        output(["scancel", job_id])
    except InputError as error:
        if _NOT_TAKEN.search(str(error)):
            raise ConnectionError(str(error)) from error


def hold_all(lives: Iterable[LifeRow], waiting: Iterable[str]) -> Iterator[str]:
    """Yield orders that hold jobs; one for an array, where it is for all of its tasks that wait."""
    tasks = Counter(base for base, _, task in (each.partition("_") for each in waiting) if task)
    groups: dict[tuple[str, str], list[str]] = {}
    for life in lives:
        base, _, _ = life.JobArrayID.partition("_")
        groups.setdefault((base, life.RestartCnt), []).append(life.JobArrayID)
    for (base, restarts), job_ids in groups.items():
        again = "" if restarts == "0" else " StartTime=now"  # else it begins two minutes later
        for job_id in [base] if 1 < len(job_ids) == tasks[base] else job_ids:
            mark = f"AdminComment={_MARK}:{restarts}"
            yield f"{_update(job_id)} Priority=0 {mark} ReqNodeList={again}"


def start(job_id: str, placement: Placement) -> Iterator[str]:
    """Yield the orders that let a held job go, to the nodes that were chosen for it, if any."""
    nodes = ",".join(dict.fromkeys(name for name, _ in placement.tasks_by_node))
    if nodes:
        yield f"{_update(job_id)} ReqNodeList={nodes}"
    yield f"release {job_id}"


def stop(life: LifeRow) -> Iterator[str]:
    """Yield the orders that requeue what runs, and hold it here."""
    yield f"requeuehold {life.JobArrayID}"
    mark = f"{_MARK}:{int(life.RestartCnt) + 1}"
    yield f"{_update(life.JobArrayID)} AdminComment={mark} ReqNodeList="


def let_go(life: LifeRow) -> Iterator[str]:
    """Yield the orders that leave a held job to Slurm, as if it had never been held."""
    nodes = " ReqNodeList=" if names_nodes(life) else ""
    yield f"{_update(life.JobArrayID)} AdminComment={nodes}"
    yield f"release {life.JobArrayID}"


def keep(life: LifeRow, *, is_wished: bool) -> str:
    """Return the order by which a held job is kept so as a person wishes, or no longer."""
    mark = _KEPT if is_wished else f"{_MARK}:{life.RestartCnt}"
    return f"{_update(life.JobArrayID)} AdminComment={mark}"


def change_limit(job_id: str, seconds: float | None) -> str:
    """Return the order that changes the limit of a job, in whole minutes."""
    limit = "UNLIMITED" if seconds is None else str(max(1, round(seconds / 60.0)))
    return f"{_update(job_id)} TimeLimit={limit}"


def is_held(life: LifeRow) -> bool:
    """Return whether a job is held, by whomever."""
    return life.StateCompact == "PD" and life.PriorityLong == "0"


def is_marked(life: LifeRow) -> bool:
    """Return whether a job was held here since it was last requeued."""
    return life.admin_comment in (_MARK, _KEPT, f"{_MARK}:{life.RestartCnt}")


def is_kept(life: LifeRow) -> bool:
    """Return whether a job is held as a person wishes."""
    return life.admin_comment == _KEPT


def names_nodes(life: LifeRow) -> bool:
    """Return whether nodes that a job asks for may have been chosen here."""
    return life.admin_comment.startswith(f"{_MARK}:")


def release_all(*, is_tried: bool = False) -> list[str]:
    """Let go of all that is held here, but for what a person wishes held; returns their ids.

    Nothing is changed if it is only tried. Raises ``InputError`` or ``ConnectionError`` if Slurm
    does not answer, or takes no
    """
    held = [each for each in read_lives() if is_held(each) and is_marked(each)]
    held = [each for each in held if not is_kept(each)]
    held.sort(key=lambda each: [*map(int, re.findall(r"\d+", each.JobArrayID))])  # as they came
    if held and not is_tried:
        carry_out([order for each in held for order in let_go(each)])
    return [each.JobArrayID for each in held]


def watch(state: Path, say: Callable[[str], None]) -> None:
    """Watch over a service by the folder of its state, for ever; says what it does.

    Raises ``InputError`` if there is no such folder.
    """
    folder = state / "attempts"
    if not folder.is_dir():
        raise InputError("no service has worked here", source=state, expected="its folder of state")
    for silent_seconds in _silences(folder / ALIVE):
        if silent_seconds < _SILENT_SECONDS:
            time.sleep(_EVERY_SECONDS)
            continue
        try:
            released = release_all()
        except (ConnectionError, InputError) as error:
            say(f"the service is silent, and its holds cannot be lifted: {error}")
        else:
            if released:
                say(f"silent for {silent_seconds:.0f} s: let go of {', '.join(released)}")
        time.sleep(_AGAIN_SECONDS)


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


def _update(job_id: str) -> str:
    return f"update JobId={job_id}"
