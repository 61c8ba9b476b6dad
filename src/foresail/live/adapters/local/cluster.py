"""The cluster that this machine is: commands as processes, each with a shim that outlives us.

A shim claims its attempt on disk before its command runs, and records the end before it goes. What
runs, has run and never ran is found out from these, by an adapter that comes later as well.
"""

from __future__ import annotations

import math
import select
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from foresail.live.accounts import made_folder, own_account
from foresail.live.adapters.local import machine
from foresail.live.adapters.local.attempts import Attempt, ProcessSpawner
from foresail.live.cluster_plugin import RunContext, UseSample
from foresail.live.command_job import CommandJob, host_name, job_environment, login_environment
from foresail.model.adapter import Capabilities, JobCommand, KnownJob
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Instruction, Placement, Preempt, Start
from foresail.model.errors import InputError, require_at_least, require_positive
from foresail.model.event import Ended, EndedBecause, HistoryOutcome, Outcome
from foresail.model.registry import register
from foresail.model.words import parse_size

_ANOTHERS: Final = (
    "is not started: a record of another store's attempt of this number is in its way "
    "(a folder of attempts belongs to one store)"
)

_HUNG: Final = "what watches it hung (a file system that does not answer?) and was killed"
_NOT_KILLED: Final = (
    "what watches it hangs (a file system that does not answer?) and cannot be killed: others are "
    "given its cpus, though some of it may still be there"
)
_HANGS_SECONDS: Final = 30.0
"""Delay after which a late shim is killed, and after which one that outlives that is let go."""

_STARTS_KNOWN: Final = 10_000
"""Starts of so many jobs are not heeded twice; those of earlier ones are found on disk."""


@dataclass(slots=True)
class _Watched:
    """An attempt that has not been reported as ended.

    It is to stop from ``stop_seconds`` on, and its shim was killed at ``killed_seconds``; ``used``
    and ``looks`` are what was measured of it; where ``is_adopted``, an earlier adapter began it,
    which has kept what it measured. ``remark`` is the last one on why it does not go on.
    """

    attempt: Attempt
    start_seconds: float
    stop_seconds: float = math.inf
    killed_seconds: float = math.inf
    used: machine.ProcessesUse | None = None
    looks: list[UseSample] = field(default_factory=list)
    is_adopted: bool = False
    remark: str = ""

    def look(self, use: machine.ProcessesUse, now: float) -> UseSample | None:
        """Note what it has used by now; a sample of that if none overlaps with it."""
        begin = self.looks[-1].end_seconds if self.looks else self.start_seconds
        if now <= begin:
            return None
        spent = use.cpu_seconds - (0.0 if self.used is None else self.used.cpu_seconds)
        cpus = max(0.0, spent) / (now - begin)
        ids = self.attempt.job_id, self.attempt.number
        self.looks.append(UseSample(*ids, begin, now, cpus, use.memory_bytes))
        self.used = use
        return None if self.is_adopted and len(self.looks) == 1 else self.looks[-1]


@dataclass(frozen=True, slots=True)
class LocalParameters:
    """Parameters of the local cluster.

    Parameters
    ----------
    cpus
        How many cpus it has; none: as many as this process may use.
    grace_seconds
        Time between the gentle and the firm signal to a job that has to end.
    nodes
        Into how many nodes they are divided, evenly; 0: they are not distinguished.
    sample_seconds
        Time between two looks at what jobs use.
    log_bytes
        Greatest size of a job's log, such as ``2MiB``: its end beyond that is kept, what is between
        is not.
    cgroups
        Whether each job gets a cgroup of its own, where the machine permits that.
    memory
        Memory for jobs that ask for some, such as ``60GiB``; none: the machine's, less a twentieth
        (2 GiB at most) for all that is no job.
    gpus
        How many gpus it has; none: those that ``nvidia-smi`` lists.
    """

    cpus: int | None = None
    grace_seconds: float = 10.0
    nodes: int = 0
    sample_seconds: float = 5.0
    log_bytes: int = 2**30
    cgroups: bool = True
    memory: str | None = None
    gpus: int | None = None

    def __post_init__(self) -> None:
        require_at_least(self, 0, "nodes", "log_bytes", "gpus", "grace_seconds")
        require_at_least(self, 1, "cpus")
        require_positive(self, "sample_seconds")
        try:
            parse_size(self.memory or "1GiB")
        except ValueError as error:
            raise InputError(
                "not usable as memory", field="memory", value=self.memory, expected=str(error)
            ) from error


class LocalAdapter:
    """The machine for one run.

    Jobs are bound to cpus where it has as many as the cluster was given; else the kernel shares.

    Its parameters are those of the cluster's plug-in; ``cgroups`` says where each attempt gets one
    of its own, if it does, and ``gpus`` what they are called.
    """

    capabilities: Final[Capabilities] = Capabilities(preempts=True, places=True, runs_commands=True)

    def __init__(
        self,
        cluster: Cluster,
        chosen: LocalParameters,
        cgroups: machine.JobCgroups | None,
        gpus: Sequence[str],
        run: RunContext,
    ) -> None:
        self.cluster = cluster
        self._chosen = chosen
        self._looked_seconds = 0.0
        self._cgroups = cgroups
        self._run = run
        self._own = own_account()
        self._spawner = ProcessSpawner()
        cpus, there = int(cluster.total.cpus), machine.machine_cpus()
        self._cpus = machine.Slots(there[:cpus] if len(there) >= cpus else ())
        self._gpus = machine.Slots(gpus)
        self._shims = select.epoll()
        self._watched: dict[str, _Watched] = {}
        self._by_pidfd: dict[int, str] = {}
        self._unreported: list[Ended] = []
        self._latest: dict[str, int] = {}

    @property
    def next_seconds(self) -> float:
        """At once if there is something to report already; else when use is looked at next."""
        if self._unreported:
            return 0.0
        return self._looked_seconds + self._chosen.sample_seconds if self._watched else math.inf

    @property
    def wake_descriptor(self) -> int:
        """Readable when a shim has gone."""
        return self._shims.fileno()

    def history(self) -> Sequence[HistoryOutcome]:
        """None: what ran here in other runs, this machine does not know."""
        return ()

    def resume(
        self,
        running: Sequence[Start],
        known: Sequence[KnownJob],  # noqa: ARG002 - none is this machine's own
        now: float,
    ) -> list[Ended]:
        """Adopt what still runs, say how the rest ended, and begin what never began."""
        never_began = []
        for start in running:
            watched = self._watch(start, now)
            if watched.attempt.is_anothers():
                self._refuse(watched, _ANOTHERS, now)
            elif watched.attempt.was_begun():
                self._find_again(watched, now)
            else:
                never_began.append(watched)
        for watched in never_began:  # now that it is known what is held
            self._run.note(f"{watched.attempt.job_id} was about to start: it is started now")
            self._begin(watched, now)
        return self._taken()

    def carry_out(self, instruction: Instruction | JobCommand, now: float) -> None:
        """Start a command, or have its shim stop it."""
        self.capabilities.require(instruction)
        match instruction:
            case Start(job_id) if instruction.attempt > self._latest.get(job_id, 0):
                watched = self._watch(instruction, now)
                if watched.attempt.is_anothers():
                    self._refuse(watched, _ANOTHERS, now)
                elif watched.attempt.was_begun():  # by a driver whose log was lost
                    self._find_again(watched, now)
                else:
                    self._begin(watched, now)
            case Preempt(job_id):
                running = self._watched.get(job_id)
                if running is not None and running.attempt.number == instruction.attempt:
                    running.stop_seconds = min(running.stop_seconds, now)
                    running.attempt.stop()

    def reports(self, now: float) -> list[Ended]:
        """Report how attempts have ended whose shims have gone; sample what the others use."""
        if self._watched and now >= self._looked_seconds + self._chosen.sample_seconds:
            self._look(now)
            self._say_what_waits_for_room()
            self._end_what_hangs(now)
        for pidfd, _ in self._shims.poll(0):
            watched = self._let_go(pidfd)
            self._adopt(watched, now)  # the shim that claimed it, if that was another
        return self._taken()

    def close(self) -> None:
        """Let go of spawner and shims, which live on."""
        self._spawner.close()
        for watched in self._watched.values():
            watched.attempt.release()
        self._shims.close()

    def _look(self, now: float) -> None:
        """Measure what attempts use, and end those that hold more memory than they may."""
        self._looked_seconds = now
        samples = []
        for watched, use in self._used():
            attempt = watched.attempt
            sample = watched.look(use, now)
            if sample is not None:
                samples.append(sample)
            limit = self._run.commands[attempt.job_id].memory_bytes
            if limit is not None and use.memory_bytes > limit and not attempt.is_over_memory():
                held = f"{use.memory_bytes / 2**20:,.0f} MiB"
                self._run.note(f"{attempt.job_id} holds {held}, more than it may: it is ended")
                watched.stop_seconds = now
                attempt.end_for_memory()
        if samples:
            self._run.keep_samples(samples)

    def _say_what_waits_for_room(self) -> None:
        """Report, once, attempts whose shims wait to write their claim or their end."""
        for watched in self._watched.values():
            attempt = watched.attempt
            obstacle = None if attempt.is_under_way() else attempt.obstacle()
            if obstacle is None:
                continue
            sentence = (
                f"has ended but cannot record that: {obstacle}; it counts as ended"
                if attempt.was_begun()
                else f"has been started but cannot write its claim: {obstacle}; it begins"
            )
            if sentence != watched.remark:
                watched.remark = sentence
                self._run.note(f"{attempt.job_id} {sentence} as soon as there is room")

    def _end_what_hangs(self, now: float) -> None:
        """Kill shims that should have ended their command, and let go of what outlives that."""
        for pidfd, job_id in [*self._by_pidfd.items()]:
            watched, limit = self._watched[job_id], self._run.commands[job_id].requested_seconds
            attempt, claim = watched.attempt, watched.attempt.claim()
            start = watched.start_seconds if claim is None else claim.start.by_clock_of(now)
            last = min(watched.stop_seconds, math.inf if limit is None else start + limit)
            if now < last + self._chosen.grace_seconds + _HANGS_SECONDS or attempt.obstacle():
                continue
            if watched.killed_seconds == math.inf:
                self._run.note(f"{job_id} has not ended: {_HUNG}")
                watched.killed_seconds = now
                attempt.stop(signal.SIGKILL)
            elif now >= watched.killed_seconds + _HANGS_SECONDS:
                self._let_go(pidfd).attempt.clear_remains()
                self._refuse(watched, _NOT_KILLED, now)

    def _let_go(self, pidfd: int) -> _Watched:
        """Watch a shim no more."""
        watched = self._watched[self._by_pidfd.pop(pidfd)]
        self._shims.unregister(pidfd)
        watched.attempt.release()
        return watched

    def _used(self) -> Iterator[tuple[_Watched, machine.ProcessesUse]]:
        """Yield the use by now of attempts that have a process."""
        by_shim: dict[int, _Watched] = {}
        for each in self._watched.values():
            claim = each.attempt.claim()
            if claim is None:
                continue
            use = None if claim.cgroup is None else machine.use_of_cgroup(claim.cgroup)
            if use is None:
                by_shim[claim.shim.pid] = each
            else:
                yield each, use
        for shim, use in machine.use_by_shim(by_shim).items():
            yield by_shim[shim], use

    def _taken(self) -> list[Ended]:
        ended, self._unreported = self._unreported, []
        return ended

    def _watch(self, start: Start, now: float) -> _Watched:
        """Note an attempt that is to be reported; no start of it is heeded again."""
        self._latest[start.job_id] = start.attempt
        if len(self._latest) > _STARTS_KNOWN:
            del self._latest[next(iter(self._latest))]
        attempt = Attempt(start.job_id, start.attempt, self._run.attempts, self._run.identity)
        watched = self._watched[start.job_id] = _Watched(attempt, now)
        return watched

    def _find_again(self, watched: _Watched, now: float) -> None:
        """Wait for an attempt that another adapter began, or report how it ended."""
        job_id = watched.attempt.job_id
        claim = watched.attempt.claim()
        watched.is_adopted = True
        if claim is not None:
            watched.start_seconds = claim.start.by_clock_of(now)
            self._cpus.hold(job_id, claim.cpus)
            self._gpus.hold(job_id, claim.gpus)
        if self._adopt(watched, now):
            self._run.note(f"{job_id} is still running: it is waited for")

    def _adopt(self, watched: _Watched, now: float) -> bool:
        """Wait for the shim that claimed an attempt; report its end if that shim has gone."""
        pidfd = watched.attempt.adopt()
        if pidfd is None:
            self._end(watched, now)
            return False
        self._wait_for(watched, pidfd)
        return True

    def _begin(self, watched: _Watched, now: float) -> None:
        """Start a shim for an attempt that nothing has claimed."""
        attempt = watched.attempt
        job = self._run.commands[attempt.job_id]
        requested = math.inf if job.requested_seconds is None else job.requested_seconds
        cpus = self._cpus.take(job.job_id, job.cpus)
        gpus = self._gpus.take(job.job_id, job.gpus)
        cgroup = None
        if self._cgroups is not None:
            cgroup = self._cgroups.of_attempt(job, attempt.number, self._run.attempts, cpus)
        try:
            account = None if self._run.account_of_job is None else self._run.account_of_job(job)
            pidfd = attempt.spawn(
                self._spawner,
                job,
                limit_seconds=requested,
                grace_seconds=self._chosen.grace_seconds,
                cpus=cpus,
                gpus=gpus,
                cgroup=cgroup,
                environment={
                    **login_environment(account or self._own),
                    **self._run.environment,
                    **job_environment(job, attempt.number),
                    **machine.gpu_variables(gpus),
                },
                logs=made_folder(self._run.logs, account),
                log_bytes=self._chosen.log_bytes,
                account=account,
            )
        except (OSError, InputError) as error:
            self._refuse(watched, f"cannot be started: {getattr(error, 'strerror', error)}", now)
            return
        self._wait_for(watched, pidfd)

    def _refuse(self, watched: _Watched, why: str, now: float) -> None:
        """Report an attempt as failed that was not begun, or is given up."""
        self._run.note(f"{watched.attempt.job_id} {why}")
        start = now if watched.killed_seconds == math.inf else watched.start_seconds
        ids = watched.attempt.job_id, start, now, EndedBecause.FAILED, None, watched.attempt.number
        self._report(Outcome(*ids, reason=why), now)

    def _wait_for(self, watched: _Watched, pidfd: int) -> None:
        self._by_pidfd[pidfd] = watched.attempt.job_id
        self._shims.register(pidfd, select.EPOLLIN)
        if watched.stop_seconds < math.inf:
            watched.attempt.stop()

    def _end(self, watched: _Watched, now: float) -> None:
        """Report an attempt whose shim has gone: as that recorded, or it is lost."""
        attempt, status = watched.attempt, watched.attempt.status()
        if attempt.is_anothers():  # whose shim was there first
            self._refuse(watched, _ANOTHERS, now)
            return
        if status is None:
            claim = attempt.claim()
            attempt.clear_remains()
            end = now if claim is None else now - claim.lost_seconds_ago
            end = max(watched.start_seconds, end)
            span = watched.start_seconds, end
            outcome = Outcome(attempt.job_id, *span, EndedBecause.LOST, None, attempt.number)
            if watched.killed_seconds < math.inf:
                is_wished = watched.stop_seconds < math.inf and not attempt.is_over_memory()
                because = EndedBecause.PREEMPTED if is_wished else EndedBecause.LIMIT
                outcome = replace(outcome, ended_because=because, reason=_HUNG)
            self._report(outcome, now)
            return
        if status.problem is not None:
            self._run.note(f"{attempt.job_id} cannot be run: {status.problem}")
        start = min(status.start.by_clock_of(now), now - status.runtime_seconds)
        end = start + status.runtime_seconds
        if status.cpu_seconds is not None and watched.used is not None:
            watched.look(machine.ProcessesUse(status.cpu_seconds, watched.used.memory_bytes), end)
        used = measured(watched.looks, self._run.commands[attempt.job_id].tasks)
        because, code, number = status.ended_because, status.exit_code, attempt.number
        ids = attempt.job_id, start, end, because, code, number
        self._report(Outcome(*ids, used=used, reason=status.reason), now)

    def _report(self, outcome: Outcome, now: float) -> None:
        del self._watched[outcome.job_id]
        self._cpus.give_back(outcome.job_id)
        self._gpus.give_back(outcome.job_id)
        self._unreported.append(Ended(now, outcome))


def measured(looks: Sequence[UseSample], tasks: int) -> Mapping[str, float]:
    """Return what each task of an attempt used, by the names of ``traces.measured``.

    Memory counts as it was at each look; nothing is known of an attempt that was never looked at.
    """
    if not looks:
        return {}
    spans = [each.end_seconds - each.start_seconds for each in looks]
    used: dict[str, float] = {}
    for name, field_name in (("cpu", "average_cpus"), ("memory", "memory_bytes")):
        values = [getattr(each, field_name) for each in looks]
        whole = sum(value * span for value, span in zip(values, spans, strict=True))
        used |= {name: whole / sum(spans), f"{name}_time": whole, f"{name}_max": max(values)}
    return {name: value / tasks for name, value in used.items()}


class LocalTrial:
    """The machine and jobs for it, with their files in a folder."""

    def __init__(self, connect: Callable[[RunContext], LocalAdapter], folder: Path) -> None:
        self._connect = connect
        self._commands: dict[str, CommandJob] = {}
        self._marks = folder / "marks"
        self._run = RunContext(folder / "attempts", folder / "logs", self._commands, lambda _: None)
        for each in (self._marks, self._run.attempts, self._run.logs):
            each.mkdir(parents=True)

    def connect(self) -> LocalAdapter:
        """Another adapter to this machine."""
        return self._connect(self._run)

    def start_of(self, seconds: float) -> Start:
        """The start of a new command."""
        job_id = f"sleep-{len(self._commands)}"
        command = f"echo >> {job_id}; sleep {seconds}"
        self._commands[job_id] = CommandJob(job_id, job_id, command, str(self._marks))
        return Start(job_id, Placement.whole("all", 1))

    def times_begun(self, job_id: str) -> int:
        """Count the marks of its begins."""
        mark = self._marks / job_id
        return len(mark.read_text().splitlines()) if mark.exists() else 0


@register("cluster", "local", parameters=LocalParameters)
class LocalCluster:
    """Commands on this machine's cpus, each with a process that watches it."""

    capabilities: Final[Capabilities] = LocalAdapter.capabilities

    def __init__(self, parameters: LocalParameters) -> None:
        self.parameters = parameters

    def connect(self, run: RunContext) -> LocalAdapter:
        """Its adapter for one run."""
        chosen, gpus = self.parameters, self._gpus()
        cgroups = machine.permitted_cgroups() if chosen.cgroups else None
        cluster = _divided(self._total(gpus), chosen.nodes)
        return LocalAdapter(cluster, chosen, cgroups, gpus, run)

    @property
    def total(self) -> Resources:
        """Return the resources for all jobs together."""
        return self._total(self._gpus())

    def _total(self, gpus: tuple[str, ...]) -> Resources:
        chosen = self.parameters
        cpus = len(machine.machine_cpus()) if chosen.cpus is None else chosen.cpus
        memory = (
            machine.machine_memory_bytes() if chosen.memory is None else parse_size(chosen.memory)
        )
        return Resources(float(cpus), memory, float(len(gpus)))

    def _gpus(self) -> tuple[str, ...]:
        """Return the names of gpus; where there are fewer than it was given, numbers."""
        count = self.parameters.gpus
        if count == 0:
            return ()
        found = machine.machine_gpus()
        if count is None:
            return found
        return found[:count] if len(found) >= count else tuple(map(str, range(count)))

    def trial(self, folder: Path) -> LocalTrial:
        """The machine, with commands that sleep."""
        return LocalTrial(self.connect, folder)


def _divided(total: Resources, count: int) -> Cluster:
    """The machine as one partition: of so many nodes with equal shares, if that is wished."""
    if not count:
        return Cluster((Partition("all", total),))
    cpus, gpus = int(total.cpus), int(total.gpus)
    if cpus < count:
        raise InputError(
            "more nodes than cpus", field="nodes", value=count, expected=f"at most {cpus}"
        )
    host = host_name()
    names = [host] if count == 1 else [f"{host}-{number}" for number in range(count)]
    memory = float(total.memory_bytes // count)
    nodes = tuple(
        Node(name, Resources(_share(cpus, count, at), memory, _share(gpus, count, at)))
        for at, name in enumerate(names)
    )
    return Cluster((Partition("all", sum((each.total for each in nodes), Resources()), nodes),))


def _share(whole: int, count: int, at: int) -> float:
    """Return the share of one of so many; the first ones have what is left over."""
    return float(whole // count + (at < whole % count))
