"""The life of a job that starts in parts: which of its tasks may start, run and have ended."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from foresail.model.distribution import Distribution
from foresail.model.errors import InputError
from foresail.model.job import Job
from foresail.model.outcome import GOES_BACK, EndedBecause, Outcome, Part
from foresail.model.view import StartableTasks, TaskNumbers


class PartsOfJob:
    """What became so far of the stages and tasks of one job.

    A stage may start once those before it have completed. The job has completed when all of its
    tasks have. If a part ends in another way, but for those that go back to wait, the job has
    failed: nothing more of it starts, and it has ended when the last part that runs has.

    To be read by others: ``job``, ``startable`` (what may start, by stage), ``running`` (parts, in
    order of start), ``begun_seconds`` (when the first part started), ``first_start`` (the number
    of that start), ``went_back`` (how often a part did, of those that have), ``because`` (why it
    has failed), ``belief`` (what is believed of its runtime since it was submitted, if that is
    something else).

    Raises
    ------
    InputError
        If two stages have one name, one has none, or one waits for another that is not before it.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.running: dict[Part, None] = {}
        self.begun_seconds: float | None = None
        self.first_start: int | None = None
        self.went_back: dict[Part, int] = {}
        self.because: EndedBecause | None = None
        self.belief: Distribution | None = None
        self._stages = {stage.name: stage for stage in job.stages}
        self._left: dict[str, TaskNumbers] = {}  # to start, of stages that may
        self._to_complete = {stage.name: stage.tasks for stage in job.stages}
        self._require_order()
        self._open_stages()

    def _require_order(self) -> None:
        earlier: set[str] = set()
        for stage in self.job.stages:
            if not stage.name or stage.name in earlier or not earlier.issuperset(stage.after):
                raise InputError(
                    f"the stages of job {self.job.job_id!r} cannot be started one after the other",
                    field="stages",
                    value=stage.name,
                    expected="names of their own, each after those that it waits for",
                )
            earlier.add(stage.name)

    def copy(self) -> PartsOfJob:
        """Another, in which all is now as it is here."""
        twin = object.__new__(PartsOfJob)
        twin.__dict__.update(self.__dict__)
        twin.running = dict(self.running)
        twin.went_back = dict(self.went_back)
        twin._left = dict(self._left)
        twin._to_complete = dict(self._to_complete)
        return twin

    @property
    def startable(self) -> tuple[StartableTasks, ...]:
        """What may start now, by stage; nothing if the job has failed."""
        if self.because is not None:
            return ()
        return tuple(
            StartableTasks(self._stages[name], tasks) for name, tasks in self._left.items() if tasks
        )

    @property
    def ended_because(self) -> EndedBecause | None:
        """Why the job is done with; None if it is not."""
        if self.running:
            return None
        return self.because if self._to_complete else EndedBecause.COMPLETED

    def smallest(self) -> Iterator[Job]:
        """What has to find room at once for every stage to run, each as a job of its own."""
        for stage in self.job.stages:
            yield self.job.part(stage, stage.tasks if stage.together else 1)

    def start(self, part: Part, now: float, number: int) -> None:
        """A part that may start does, as that of this number of all starts.

        Raises
        ------
        KeyError
            If it may not.
        """
        self._left[part.stage] = self._left[part.stage].without(self._tasks(part))
        self.running[part] = None
        if self.begun_seconds is None:
            self.begun_seconds, self.first_start = now, number

    def end(self, part: Part, because: EndedBecause) -> None:
        """A part that runs has ended.

        Raises
        ------
        KeyError
            If it does not run.
        """
        del self.running[part]
        tasks = self._tasks(part)
        if because in GOES_BACK:
            self._left[part.stage] = self._left[part.stage].including(tasks)
            self.went_back[part] = 1 + self.went_back.get(part, 0)
        elif because is not EndedBecause.COMPLETED:
            self.because = self.because or because
        else:
            self._to_complete[part.stage] -= len(tasks)
            if not self._to_complete[part.stage]:
                del self._to_complete[part.stage], self._left[part.stage]
                self._open_stages()

    def cancel(self) -> None:
        """Nothing more of it starts; it has ended with what runs of it."""
        self.because = self.because or EndedBecause.CANCELLED

    def outcome(self, last: Outcome) -> Outcome:
        """How the job as a whole has ended, with its last part: begun when its first part was."""
        because = self.ended_because
        assert self.begun_seconds is not None
        assert because is not None
        return replace(
            last,
            start_seconds=self.begun_seconds,
            ended_because=because,
            attempt=1,
            slowdown=1.0,
            stage="",
            tasks=(),
        )

    def _tasks(self, part: Part) -> Collection[int]:
        return part.tasks or range(self._stages[part.stage].tasks)

    def _open_stages(self) -> None:
        """Let stages start that wait for no other any more."""
        for name in self._to_complete:
            stage = self._stages[name]
            if name not in self._left and self._to_complete.keys().isdisjoint(stage.after):
                self._left[name] = TaskNumbers.below(stage.tasks)
