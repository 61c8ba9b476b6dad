"""A toy cluster with a queue of its own in a file, which anybody may change: a plug-in of one file.

A row is a job: ``user``, ``name``, ``cpus``, ``limit``, how long it runs (``seconds``), ``state``
(pending, running, done or gone), ``attempt`` and its ``start``, and the ``ends`` of attempts.
"""

from __future__ import annotations

import fcntl
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from foresail.model.adapter import Capabilities
from foresail.model.cluster import Cluster, Resources
from foresail.model.decision import Placement, Preempt, Start, Withdraw
from foresail.model.event import (
    Began,
    Cancelled,
    Ended,
    EndedBecause,
    Held,
    JobChanged,
    Outcome,
    Released,
    Submitted,
)
from foresail.model.job import Job, Stage
from foresail.model.registry import register
from foresail.model.words import LEFT_TO

NAME = "toyqueue:"


@dataclass(frozen=True, slots=True)
class QueueParameters:
    """Parameters of the toy.

    Parameters
    ----------
    file
        Where its queue is.
    """

    file: str = ""


def row(**given):
    usual = {"user": "ann", "name": "train", "cpus": 1, "limit": 7200.0, "seconds": 3600.0}
    return {
        **usual,
        "state": "pending",
        "attempt": 0,
        "start": 0.0,
        "ends": [],
        "held": False,
        **given,
    }


class Queue:
    """The file of the queue, changed by one at a time."""

    def __init__(self, path):
        self.path = Path(path)

    @contextmanager
    def rows(self):
        with self.path.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            before = file.read()
            rows = json.loads(before or "{}")
            yield rows
            after = json.dumps(rows)
            if after != before:
                file.truncate(0)
                file.write(after)

    def put(self, name, /, **values):
        with self.rows() as rows:
            rows[name] = {**rows.get(name, row()), **values}

    def begin(self, name, now):
        with self.rows() as rows:
            begin(rows[name], now)

    def end(self, name, now, because="completed"):
        with self.rows() as rows:
            end(rows[name], now, because)


def begin(each, now):
    each.update(state="running", start=now, attempt=each["attempt"] + 1)


def end(each, now, because):
    each["ends"].append([each["attempt"], each["start"], now, because])
    each["state"] = "pending" if because == "preempted" else "done"


class QueueAdapter:
    """It compares the queue with what it has told of it, as one does that asks squeue."""

    capabilities = Capabilities(
        preempts=True, begins_jobs=True, keeps_queue=True, brings_jobs=True, is_remote=True
    )
    wake_descriptor = None

    def __init__(self, queue):
        self.queue = queue
        self.cluster = Cluster.of_processors(4)
        self.told = {}  # by row: how many ends, whether it runs, and the job
        self.next_seconds = 0.0

    def history(self):
        return ()

    def resume(self, running, known, now):
        for each in known:
            name = each.job.job_id.removeprefix(NAME)
            self.told[name] = [each.attempts - each.runs, each.runs, each.job]
        for start in running:
            self.carry_out(start, now)
        with self.queue.rows() as rows:
            for each in known:
                there = rows.get(each.job.job_id.removeprefix(NAME), {})
                if there.get("held", each.held) != each.held:
                    there["held"] = each.held
            over = [name for name, each in rows.items() if each["state"] in ("done", "gone")]
        for name in over:  # before anybody looked
            self.told.setdefault(name, None)
        return self.reports(now)

    def carry_out(self, instruction, now):
        self.capabilities.require(instruction)
        name = instruction.job_id.removeprefix(NAME)
        with self.queue.rows() as rows:
            each = rows.get(name, row())
            match instruction, each["state"]:
                case Start(attempt=attempt), state:
                    told = self.told.setdefault(name, [attempt - 1, False, None])
                    told[1] = told[1] or told[0] < attempt
                    if state == "pending" and each["attempt"] == attempt - 1:
                        begin(each, now)
                case Preempt(attempt=attempt), "running" if each["attempt"] == attempt:
                    end(each, now, "preempted")
                case ((Cancelled() | Withdraw()), "pending"):
                    each["state"] = "gone"
                    self.told[name] = None
                case Cancelled(), "running":
                    end(each, now, "cancelled")
                case JobChanged(job=job), "pending":
                    each.update(name=job.name or each["name"], limit=job.requested_seconds)
                    self.told[name][2] = job
                case ((Held() | Released()), _):
                    each["held"] = isinstance(instruction, Held)

    def reports(self, now):
        self.next_seconds = now + 0.02
        with self.queue.rows() as rows:
            return [event for name, each in rows.items() for event in self.news(name, each, now)]

    def news(self, name, each, now):
        if each["state"] == "running" and each["start"] + each["seconds"] <= now:
            end(each, each["start"] + each["seconds"], "completed")
        if name not in self.told and each.get("ours"):
            if each["state"] != "running":
                return
            self.told[name] = [each["attempt"] - 1, False, None]
        if name not in self.told:
            earlier = len(each["ends"]) - (each["state"] == "done")
            self.told[name] = [earlier, False, job_of(name, each, now)]
            yield Submitted(now, self.told[name][2])
            if each.get("licences"):  # it understands nothing of these
                yield Held(now, NAME + name, f"{LEFT_TO}it asks for licences")
        told = self.told[name]
        if told is None:
            return
        job_id = name if each.get("ours") else NAME + name
        job = job_of(name, each, now)
        if told[2] and (told[2].name, told[2].requested_seconds) != (job.name, each["limit"]):
            told[2] = job
            yield JobChanged(now, job)
        whole = Placement.whole("all", 1)
        for attempt, start, at, because in each["ends"][told[0] :]:
            if not told[1]:
                yield Began(now, job_id, attempt, whole, start, ours=False)
            told[:2] = attempt, False
            outcome = Outcome(job_id, start, at, EndedBecause(because), attempt=attempt)
            yield Ended(now, outcome)
        if each["state"] == "running" and not told[1]:
            told[1] = True
            yield Began(now, job_id, each["attempt"], whole, each["start"], ours=False)
        if each["state"] == "gone":
            self.told[name] = None
            yield Cancelled(now, job_id)

    def close(self):
        pass


def job_of(name, each, now):
    stages = (Stage(1, Resources(float(each["cpus"]))),)
    return Job(NAME + name, now, stages, each["limit"], each["user"], name=each["name"])


class Trial:
    def __init__(self, adapter, queue):
        self.adapter = adapter
        self.queue = queue
        self.jobs = 0

    def connect(self):
        return self.adapter(self.queue)

    def start_of(self, seconds):
        self.jobs += 1
        self.queue.put(f"t{self.jobs}", seconds=seconds, ours=True)
        return Start(f"t{self.jobs}", Placement.whole("all", 1))

    def happen(self, event):
        match event:
            case Submitted(job=job):
                self.queue.put(job.job_id, cpus=int(job.cpus), limit=job.requested_seconds)
            case Cancelled(job_id=job_id):
                self.queue.put(job_id.removeprefix(NAME), state="gone")
            case Began(job_id=job_id):
                self.queue.begin(job_id.removeprefix(NAME), event.time)

    def in_queue(self, job_id):
        with self.queue.rows() as rows:
            each = rows[job_id.removeprefix(NAME)]
            return (each["held"], each["limit"]) if each["state"] == "pending" else None

    def times_begun(self, job_id):
        with self.queue.rows() as rows:
            return rows[job_id]["attempt"]


@register("cluster", "toyqueue", parameters=QueueParameters)
class QueueCluster:
    """A queue in a file."""

    capabilities = QueueAdapter.capabilities

    def __init__(self, parameters):
        self.file = parameters.file

    def connect(self, run):
        if Path(f"{self.file}.away").exists():
            raise OSError("the queue is away")
        while Path(f"{self.file}.hangs").exists():
            time.sleep(0.05)
        with Path(f"{self.file}.connections").open("a") as file:
            file.write("one\n")
        return QueueAdapter(Queue(self.file))

    def trial(self, folder):
        folder.mkdir(parents=True)
        return Trial(QueueAdapter, Queue(folder / "queue.json"))
