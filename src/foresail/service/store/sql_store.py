"""The store in a relational database: SQLite in a file, or PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Select,
    bindparam,
    case,
    cast,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError

from foresail.live.cluster_plugin import UseSample
from foresail.live.command_job import CommandJob
from foresail.model.errors import InputError
from foresail.service.store.database import Database, change_rows, insert_rows
from foresail.service.store.protocol import (
    FORECASTS,
    HORIZONS_SECONDS,
    IDENTITY,
    JOBS,
    LIVING_STATES,
    OUT_OF_MEMORY,
    PROGRESS,
    RECORDS,
    REQUESTS,
    SAMPLES,
    SNAPSHOTS,
    AboutJob,
    Accepted,
    ForecastKind,
    ForecastOutcome,
    ForecastRow,
    JobsWanted,
    Judged,
    KeyedCall,
    NumberedRequest,
    Row,
    Submit,
    UsedInBin,
    WholeStep,
    bring_up_to_date,
    job_row,
    numbers_of,
    records_about,
    request_of,
    request_row,
    what_is_asked,
)

_ROWS_AT_ONCE: Final = 1_000
_ROWS_OF_PAGE: Final = 100
"""With their scripts these may be 100 MB."""

_ONE_JOB: Final = select(JOBS).where(JOBS.c.job_id == bindparam("wanted"))
_ONE_GROUP: Final[ColumnElement[int]] = literal(0)
_OF_FORECAST: Final = FORECASTS.c.job_id == JOBS.c.job_id
_WAITING: Final = ("pending", "held")
_MOVE_ON: Final = update(PROGRESS).values(taken=bindparam("taken"))
"""Statement that most calls read and write by, made once."""


class SqlStore:
    """The store: durable when a call returns; a call that raises has changed nothing.

    One process writes to it; calls come from several threads.

    The schema of its database is brought up to date.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.numbering = threading.Lock()
        """Is held from asking for the next number until jobs have it."""
        self._passed_over = 0
        self._last_request = self._last_record = self._last_job = 0
        self._is_unsure_of_requests = self._is_unsure_of_records = False
        try:
            bring_up_to_date(database.engine)
            with database.engine.connect() as connection:
                self._look_up_requests(connection)
                self._look_up_records(connection)
                identity = connection.execute(select(IDENTITY.c.identity, IDENTITY.c.moved_to))
                self.identity, self.moved_to = identity.one()
                """Identity among all stores, made once; and where to it was moved."""
        except DBAPIError as error:
            database.close()
            raise InputError(f"cannot be used: {error.orig}", source=database.name) from error
        except BaseException:
            database.close()
            raise

    @classmethod
    def in_file(cls, path: Path) -> SqlStore:
        """The store in a file, which is made if there is none."""
        return cls(Database.in_file(path))

    @classmethod
    def at_address(cls, address: str) -> SqlStore:
        """The store in a PostgreSQL database, which this one alone writes to.

        Raises ``InputError`` if it cannot be used, or another service uses it.
        """
        database = Database.at_address(address)
        try:
            database.lock()
        except DBAPIError as error:
            raise InputError(f"cannot be reached: {error.orig}", field="database") from error
        except BaseException:
            database.close()
            raise
        return cls(database)

    def next_number(self) -> int:
        """The number of the next job: one more than that of any job accepted or skipped."""
        if self._is_unsure_of_requests:
            with self.database.reading() as connection:
                self._look_up_requests(connection)
        return self._last_job + 1

    def pass_over(self, number: int) -> None:
        """Give no job a number up to this one, which were given before."""
        self._passed_over = number
        self._last_job = max(self._last_job, number)

    def _look_up_requests(self, connection: Connection) -> None:
        """Find out what was accepted last; a transaction that failed at its end may have been."""
        last, taken = select(func.max(REQUESTS.c.number)), select(PROGRESS.c.taken)
        self._last_request = max(connection.scalar(last) or 0, connection.scalar(taken) or 0)
        job = connection.scalar(select(func.max(JOBS.c.number))) or 0
        self._last_job = max(self._passed_over, job)
        self._is_unsure_of_requests = False

    def _look_up_records(self, connection: Connection) -> None:
        """Find out which record was written last."""
        last, end = select(func.max(RECORDS.c.number)), select(SNAPSHOTS.c.end)
        self._last_record = max(connection.scalar(last) or 0, connection.scalar(end) or 0)
        self._is_unsure_of_records = False

    def accept(self, asked: Sequence[KeyedCall]) -> list[Accepted]:
        """Write down what several calls ask for, in one transaction.

        Returns the answer to each call; to one that was asked before by the same user and client
        key, also among these, the requests of that time.
        """
        now = time.time()
        answers: list[Accepted] = []
        rows: list[dict[str, Any]] = []
        jobs: list[dict[str, Any]] = []
        if any(isinstance(each, Submit) for call in asked for each in call.requests):
            self.database.require_room()
        number, last_job = self._last_request, self._last_job
        keyed: dict[tuple[str, str], tuple[NumberedRequest, ...]] = {}
        for call in asked:
            before = self._asked_before(call)
            if not before and call.client_key is not None:
                before = keyed.get((call.user, call.client_key), ())
            if before:
                same = [what_is_asked(each.request) for each in before] == [
                    what_is_asked(each) for each in call.requests
                ]
                answers.append(Accepted(before, is_new=False, conflicts=not same))
                continue
            numbered = []
            job_numbers = numbers_of(call.requests, call.first_number)
            left = iter(job_numbers)
            for request in call.requests:
                number += 1
                numbered.append(NumberedRequest(number, now, call.user, request))
                rows.append(request_row(numbered[-1], call.client_key))
                if isinstance(request, Submit):
                    row = job_row(request, next(left), call.user, now, rows[-1]["body"])
                    jobs.append(row)
            last_job = max([last_job, *job_numbers[-1:]])
            answers.append(Accepted(tuple(numbered)))
            if call.client_key is not None:
                keyed[call.user, call.client_key] = tuple(numbered)
        self._is_unsure_of_requests = True
        with self.database.writing() as connection:
            insert_rows(connection, REQUESTS, rows)
            insert_rows(connection, JOBS, jobs)
        self._last_request, self._last_job = number, last_job
        self._is_unsure_of_requests = False
        return answers

    def requests_after(self, number: int) -> list[NumberedRequest]:
        """The requests behind one, in order."""
        wanted = select(REQUESTS).where(REQUESTS.c.number > number).order_by(REQUESTS.c.number)
        return list(map(request_of, self.database.records(wanted)))

    def taken(self) -> int:
        """Number of the last request that the controller has been handed; 0 for none."""
        return next((row.taken for row in self.database.rows(select(PROGRESS))), 0)

    def records_left(self) -> int:
        """Number of the record up to which those have left that are of jobs which have left."""
        return next((row.records_left for row in self.database.rows(select(PROGRESS))), 0)

    def commit_step(self, step: WholeStep) -> int:
        """Write down a step; returns the number of the log's last record."""
        if not step.new:
            return self._commit_step(step, ())
        with self.numbering:
            new = [{**row, "number": n} for n, row in enumerate(step.new, self.next_number())]
            self._is_unsure_of_requests = True
            end = self._commit_step(step, new)
            self._last_job += len(new)
            self._is_unsure_of_requests = False
        return end

    def _commit_step(self, step: WholeStep, new: Sequence[Row]) -> int:
        was_unsure, self._is_unsure_of_records = self._is_unsure_of_records, True
        with self.database.writing() as connection:
            if was_unsure:
                self._look_up_records(connection)
            if step.lines:
                about = step.about or [None] * len(step.lines)
                rows = [
                    {"number": number, "line": line, "about": job_id}
                    for number, (line, job_id) in enumerate(
                        zip(step.lines, about, strict=True), self._last_record + 1
                    )
                ]
                insert_rows(connection, RECORDS, rows)
            insert_rows(connection, JOBS, new)
            for changes in _alike(step.jobs):
                change_rows(connection, JOBS, "job_id", changes)
            moved = connection.execute(_MOVE_ON, {"taken": step.taken})
            if not moved.rowcount:
                connection.execute(insert(PROGRESS), {"one": 1, "taken": step.taken})
        self._last_record += len(step.lines)
        self._is_unsure_of_records = False
        return self._last_record

    def records(self, after: int = 0, limit: int | None = None) -> Iterator[tuple[int, str]]:
        """The event log behind a record: numbers (from 1) and lines."""
        wanted = select(RECORDS.c.number, RECORDS.c.line).where(RECORDS.c.number > after)
        wanted = wanted.order_by(RECORDS.c.number)
        with self.database.reading() as connection:
            rows = connection.execute(wanted if limit is None else wanted.limit(limit))
            for some in rows.partitions(_ROWS_AT_ONCE):
                yield from some

    def records_about(self, job: Row) -> AboutJob:
        """Return lines of the event log that a job's story follows from."""
        with self.database.reading() as connection:
            return records_about(connection, job)

    def last_record(self) -> int:
        """Number of the event log's last record; 0 where there is none."""
        return self._last_record

    def keep_snapshot(self, lines: Sequence[str], end: int) -> None:
        """Keep the records that matter of the log up to number ``end``, instead of an older one."""
        with self.database.writing() as connection:
            connection.execute(SNAPSHOTS.delete())
            row = {"one": 1, "end": end, "lines": "".join(lines)}
            connection.execute(insert(SNAPSHOTS), row)

    def snapshot(self) -> tuple[int, Sequence[str]] | None:
        """The number up to which the last snapshot reaches, and its lines."""
        rows = self.database.rows(select(SNAPSHOTS))
        return next(((row.end, row.lines.splitlines(keepends=True)) for row in rows), None)

    def records_of_snapshot(self, lines: Iterable[str]) -> Iterator[tuple[int | None, str]]:
        """The records of a snapshot, with their numbers where these stand in it."""
        wanted = select(RECORDS.c.number, RECORDS.c.line)
        rest = iter(lines)
        with self.database.reading() as connection:
            while some := list(islice(rest, _ROWS_AT_ONCE)):
                numbers = [int(each) if each.rstrip().isdecimal() else None for each in some]
                rows = connection.execute(wanted.where(RECORDS.c.number.in_(filter(None, numbers))))
                found: dict[int, str] = {row[0]: row[1] for row in rows}
                for number, line in zip(numbers, some, strict=True):
                    if number is not None and number not in found:
                        raise InputError("is in the log no more", source="event log", line=number)
                    yield number, line if number is None else found[number]

    def job(self, job_id: str) -> Row | None:
        """A job as it stands."""
        return next(iter(self.database.records(_ONE_JOB, {"wanted": job_id})), None)

    def member(self, number: str) -> Row | None:
        """The member of another number's array that has a number of its own."""
        same = JOBS.c.number == (int(number) if number.isdecimal() else -1)
        rows = self.database.records(select(JOBS).where(same))
        return next((row for row in rows if CommandJob.from_json(row["command"]).number), None)

    def jobs(self, wanted: JobsWanted) -> list[Row]:
        """Jobs as they stand."""
        found: list[Row] = []
        while left := min(wanted.limit - len(found), _ROWS_OF_PAGE):
            some = self.database.page(JOBS, _page_of(wanted, left))
            found += some
            if len(some) < left:
                break
            last = {"after" if wanted.oldest_first else "before": some[-1]["number"]}
            wanted = replace(wanted, **last)
        return found

    def count(self, wanted: JobsWanted) -> int:
        """Return how many such jobs there are, on all pages."""
        found = _chosen(replace(wanted, before=None, after=None), select(func.count(JOBS.c.number)))
        return int(self.database.rows(found)[0][0])

    def counts(self, user: str | None = None) -> dict[str, int]:
        """Return how many jobs there are in each state; of one user, or of all."""
        wanted = select(JOBS.c.state, func.count()).group_by(JOBS.c.state)
        if user is not None:
            wanted = wanted.where(JOBS.c.user == user)
        return dict(self.database.rows(wanted))

    def keep_samples(self, samples: Sequence[UseSample]) -> None:
        """Keep what jobs were measured to use."""
        with self.database.writing() as connection:
            insert_rows(connection, SAMPLES, [asdict(each) for each in samples])

    def samples(self) -> list[UseSample]:
        """Return the measured use of each job, in order."""
        wanted = select(SAMPLES).order_by(SAMPLES.c.end_seconds, SAMPLES.c.job_id)
        return [UseSample(**row) for row in self.database.records(wanted)]

    def use(self, begin_seconds: float, bin_seconds: float, bins: int) -> list[list[UsedInBin]]:
        """Sums over the starts, and over the ends, of jobs that had not ended by a time; by bin.

        The database adds them up: each row that is read takes a turn of the interpreter.
        """
        of = JOBS.c
        lasts = of.end_seconds.is_(None) | (of.end_seconds > begin_seconds)
        end_seconds = begin_seconds + bins * bin_seconds
        found: list[list[UsedInBin]] = []
        with self.database.reading() as connection:
            for moment in (of.start_seconds, of.end_seconds):
                after = moment - begin_seconds
                nearest = cast(after / bin_seconds, Integer)
                number = case(
                    (after < 0.0, 0),
                    (nearest * bin_seconds > after, nearest),  # rounded up
                    else_=nearest + 1,
                ).label("bin")
                sums = (
                    func.count(),
                    func.sum(of.cpus),
                    func.sum(of.cpus * after),
                    func.sum(of.start_seconds - of.submit_seconds),
                )
                wanted = select(number, *sums).where(lasts & (moment < end_seconds))
                wanted = wanted.where(of.start_seconds.is_not(None)).group_by("bin")
                found.append([UsedInBin(*row) for row in connection.execute(wanted)])
        return found

    def first_submission(self, since_seconds: float) -> float | None:
        """Return when the first job came (Unix seconds) of those that had not ended by a time."""
        of = JOBS.c
        first = select(func.min(of.submit_seconds))
        lasts = of.end_seconds.is_(None) | (of.end_seconds > since_seconds)
        found: float | None = self.database.rows(first.where(lasts))[0][0]
        return found

    def keep_forecasts(self, rows: Sequence[ForecastRow]) -> None:
        """Keep forecasts of starts."""
        values = [{name: getattr(each, name) for name in ForecastRow.__slots__} for each in rows]
        with self.database.writing() as connection:
            insert_rows(connection, FORECASTS, values)

    def last_forecasts(self) -> dict[str, float]:
        """Return when the last forecast was made of each job that waits (Unix seconds), by id."""
        wanted = select(FORECASTS.c.job_id, func.max(FORECASTS.c.made_seconds))
        wanted = wanted.join(JOBS, _OF_FORECAST).where(JOBS.c.state.in_(_WAITING))
        return dict(self.database.rows(wanted.group_by(FORECASTS.c.job_id)))

    def forecast_outcomes(self, limit: int, now: float) -> list[ForecastOutcome]:
        """Return the latest forecasts, in order, with starts; of who waits, that it did not yet.

        Left out are jobs that were started more than once, those that never were and wait no more,
        and those that have not waited for half as long as the shortest wait that was drawn.
        """
        first = JOBS.c.attempt == 1
        half = (FORECASTS.c.made_seconds + FORECASTS.c.drawn_low_seconds) / 2.0
        waits = (JOBS.c.attempt == 0) & JOBS.c.state.in_(_WAITING) & (half < now)
        times = JOBS.c.submit_seconds, JOBS.c.start_seconds
        wanted = select(FORECASTS, *times).join(JOBS, _OF_FORECAST)
        wanted = wanted.where(first | waits).order_by(
            FORECASTS.c.made_seconds.desc(), JOBS.c.number.desc()
        )
        rows = self.database.rows(wanted.limit(limit))
        return [
            ForecastOutcome(
                ForecastRow(row[0], row[1], ForecastKind(row[2]), *row[3:-2]),
                row[-2],
                now if row[-1] is None else row[-1],
                row[-1] is not None,
            )
            for row in reversed(rows)
        ]

    def judged_forecasts(self, now: float) -> tuple[Judged, list[Judged]]:
        """Compare ranges of starts with when jobs have started.

        Who waits though its range has ended started after it. Returns that of all forecasts at
        submission, and of all forecasts by horizon.
        """
        stated = FORECASTS.c
        start = func.coalesce(JOBS.c.start_seconds, JOBS.c.end_seconds, now)
        has_started = JOBS.c.start_seconds.is_not(None) & (JOBS.c.attempt == 1)
        is_late = (JOBS.c.attempt == 0) & (start > stated.high_seconds) & (JOBS.c.state != "held")
        came_about = (has_started | is_late) & (stated.kind != ForecastKind.UNKNOWN)
        off = stated.median_seconds - stated.made_seconds
        horizon = case(
            *((off < seconds, number) for number, seconds in enumerate(HORIZONS_SECONDS[:-1])),
            else_=len(HORIZONS_SECONDS) - 1,
        )
        both = JOBS.join(FORECASTS, _OF_FORECAST)
        ranges = start, stated.low_seconds, stated.high_seconds, both
        first = self._judged(*ranges, came_about & (stated.kind == ForecastKind.SUBMISSION))
        by_horizon = self._judged(*ranges, came_about, horizon)
        none = Judged()
        return (
            first.get(0, none),
            [by_horizon.get(number, none) for number in range(len(HORIZONS_SECONDS))],
        )

    def judged_ends(self, now: float) -> Judged:
        """Compare ranges of ends at submission with when jobs have ended, or should have."""
        stated, end = FORECASTS.c, func.coalesce(JOBS.c.end_seconds, now)
        has_ended = JOBS.c.state.in_(("completed", "failed", "limit")) & (JOBS.c.attempt == 1)
        lasts = JOBS.c.end_seconds.is_(None) & (JOBS.c.attempt <= 1) & (JOBS.c.state != "held")
        came_about = has_ended | (lasts & (end > stated.end_high_seconds))
        came_about &= stated.end_low_seconds.is_not(None)
        found = self._judged(
            *(end, stated.end_low_seconds, stated.end_high_seconds),
            JOBS.join(FORECASTS, _OF_FORECAST),
            came_about & (stated.kind == ForecastKind.SUBMISSION),
        )
        return found.get(0, Judged())

    def judged_runtimes(self) -> Judged:
        """Compare believed runtimes with those of jobs that have completed."""
        found = self._judged(
            JOBS.c.end_seconds - JOBS.c.start_seconds,
            JOBS.c.low_seconds,
            JOBS.c.high_seconds,
            JOBS,
            JOBS.c.state == "completed",
        )
        return found.get(0, Judged())

    def _judged(
        self,
        value: ColumnElement[float],
        low: ColumnElement[float],
        high: ColumnElement[float],
        rows: FromClause,
        came_about: ColumnElement[bool],
        group: ColumnElement[int] = _ONE_GROUP,
    ) -> dict[int, Judged]:
        """Return the comparisons by group."""
        counts = select(
            group.label("grouped"),
            func.count(),
            func.sum(case((value.between(low, high), 1), else_=0)),
            func.sum(case((value < low, 1), else_=0)),
        )
        counts = counts.select_from(rows).where(came_about).group_by("grouped")
        return {row[0]: Judged(*row[1:]) for row in self.database.rows(counts)}

    def ids_of_cluster(self, name: str) -> list[str]:
        """Return ids of jobs that the cluster calls so, or members of an array of that name."""
        ends = JOBS.c.job_id.endswith(f":{name}", autoescape=True)
        is_member = JOBS.c.job_id.contains(f":{name}_", autoescape=True)
        wanted = select(JOBS.c.job_id).where(ends | is_member).order_by(JOBS.c.number)
        return [job_id for (job_id,) in self.database.rows(wanted)]

    def owners(self, job_ids: Collection[str]) -> dict[str, str]:
        """Return the owners of these jobs, by id."""
        wanted = select(JOBS.c.job_id, JOBS.c.user).where(JOBS.c.job_id.in_(job_ids))
        return dict(self.database.rows(wanted))

    def commands(self) -> Iterator[tuple[str, str]]:
        """Ids and commands of the jobs that are not finished, as lines, in order."""
        wanted = select(JOBS.c.job_id, JOBS.c.command).where(JOBS.c.state.in_(LIVING_STATES))
        with self.database.reading() as connection:
            yield from connection.execute(wanted.order_by(JOBS.c.number))

    def close(self) -> None:
        """Let go of it."""
        self.database.close()

    def _asked_before(self, call: KeyedCall) -> tuple[NumberedRequest, ...]:
        if call.client_key is None:
            return ()
        same = (REQUESTS.c.user == call.user) & (REQUESTS.c.client_key == call.client_key)
        wanted = select(REQUESTS).where(same).order_by(REQUESTS.c.number)
        return tuple(map(request_of, self.database.records(wanted)))


def _alike(jobs: Mapping[str, Row]) -> Collection[Mapping[str, Row]]:
    """Changes of jobs by the columns that change: those of one kind are written at once."""
    groups: dict[tuple[str, ...], dict[str, Row]] = {}
    for job_id, values in jobs.items():
        groups.setdefault(tuple(sorted(values)), {})[job_id] = values
    return groups.values()


def _page_of(wanted: JobsWanted, most: int) -> Select[Any]:
    """Return the first of the wanted jobs, in order."""
    number = JOBS.c.number.asc() if wanted.oldest_first else JOBS.c.number.desc()
    if wanted.job_ids is None:
        return _chosen(wanted, select(JOBS)).order_by(number).limit(most)
    by_id = JOBS.c.number + 0  # not by looking at all in order
    numbers = _chosen(wanted, select(JOBS.c.number)).limit(most)
    numbers = numbers.order_by(by_id.asc() if wanted.oldest_first else by_id.desc())
    return select(JOBS).where(JOBS.c.number.in_(numbers)).order_by(number)


def _chosen(wanted: JobsWanted, found: Select[Any]) -> Select[Any]:
    for column, values in ((JOBS.c.user, wanted.users), (JOBS.c.name, wanted.names)):
        if values:
            found = found.where(column.in_(values))
    if wanted.states:
        is_wanted: ColumnElement[bool] = JOBS.c.state.in_(wanted.states)
        if OUT_OF_MEMORY in wanted.states:  # else an index of states has these, in order
            is_wanted |= (JOBS.c.state == "limit") & JOBS.c.because.contains("memory")
        found = found.where(is_wanted)
    if wanted.job_ids is not None:
        found = found.where(JOBS.c.job_id.in_(wanted.job_ids))
    if wanted.before is not None:
        found = found.where(JOBS.c.number < wanted.before)
    if wanted.after is not None:
        found = found.where(JOBS.c.number > wanted.after)
    return found
