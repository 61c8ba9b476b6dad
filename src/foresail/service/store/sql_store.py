"""The store in a relational database: SQLite in a file, or PostgreSQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Select,
    bindparam,
    case,
    create_engine,
    event,
    func,
    insert,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError

from foresail.live.cluster_plugin import UseSample
from foresail.live.command_job import CommandJob
from foresail.model.errors import InputError
from foresail.service.requests import (
    ForJob,
    ForNode,
    JobWish,
    NodeWish,
    NumberedRequest,
    Request,
    Submit,
)
from foresail.service.store.migrating import bring_up_to_date
from foresail.service.store.protocol import (
    Accepted,
    ForecastRow,
    JobSpan,
    JobsWanted,
    Judged,
    KeyedCall,
    Row,
    StoreUnavailable,
    WholeStep,
)
from foresail.service.store.tables import (
    FORECASTS,
    JOBS,
    PROGRESS,
    RECORDS,
    REQUESTS,
    SAMPLES,
    SNAPSHOTS,
)

_ROWS_AT_ONCE: Final = 1_000
_LOCK: Final = 0x466F7265
"""Number of the advisory lock that says that a service uses a PostgreSQL database."""

DONE_STATES: Final = ("completed", "failed", "limit", "cancelled", "withdrawn")
"""States that a job does not leave."""


class SqlStore:
    """A store behind SQLAlchemy.

    Parameters
    ----------
    engine
        The database, whose schema is up to date.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._held: Connection | None = None
        self._turn = threading.Lock()  # SQLite has who waits for another look again ever later
        with self._reading() as connection:
            self._last_request: int = connection.scalar(select(func.max(REQUESTS.c.number))) or 0
            self._last_record: int = connection.scalar(select(func.max(RECORDS.c.number))) or 0
            self._last_job: int = connection.scalar(select(func.max(JOBS.c.number))) or 0

    @classmethod
    def in_file(cls, path: Path) -> SqlStore:
        """The store in a file, which is made if there is none.

        Raises
        ------
        InputError
            If it cannot be used.
        """
        engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 30.0})
        event.listen(engine, "connect", _set_up_sqlite)
        try:
            bring_up_to_date(engine)
            return cls(engine)
        except DBAPIError as error:
            raise InputError(f"cannot be used: {error.orig}", source=path) from error

    @classmethod
    def at_address(cls, address: str) -> SqlStore:
        """The store in a PostgreSQL database, which this one alone writes to.

        Raises
        ------
        InputError
            If it cannot be used, or another service uses it.
        """
        try:
            url = make_url(address).set(drivername="postgresql+psycopg")
            engine = create_engine(url, pool_pre_ping=True)
            store_lock = engine.connect()
        except (ArgumentError, ImportError) as error:
            raise InputError(
                f"cannot be used: {error}",
                field="database",
                expected="sqlite, or postgresql://USER@HOST/NAME with foresail[postgresql]",
            ) from error
        except DBAPIError as error:
            raise InputError(f"cannot be reached: {error.orig}", field="database") from error
        try:
            if not store_lock.scalar(select(func.pg_try_advisory_lock(_LOCK))):
                raise InputError("another service uses this database", field="database")
            store_lock.commit()
            bring_up_to_date(engine)
            store = cls(engine)
        except BaseException:
            store_lock.close()
            engine.dispose()
            raise
        store._held = store_lock
        return store

    @property
    def engine(self) -> Engine:
        """The database, for what else is kept in it."""
        return self._engine

    def next_number(self) -> int:
        """As the protocol has it."""
        return self._last_job + 1

    def accept(self, asked: Sequence[KeyedCall]) -> list[Accepted]:
        """As the protocol has it."""
        now = time.time()
        answers: list[Accepted] = []
        rows: list[dict[str, Any]] = []
        jobs: list[dict[str, Any]] = []
        number, job_number = self._last_request, self._last_job
        with self._writing() as connection:
            keyed: dict[tuple[str, str], tuple[NumberedRequest, ...]] = {}
            for call in asked:
                before = self._asked_before(connection, call)
                if not before and call.client_key is not None:
                    before = keyed.get((call.user, call.client_key), ())
                if before:
                    same = [_wanted(each.request) for each in before] == [
                        _wanted(each) for each in call.requests
                    ]
                    answers.append(Accepted(before, is_new=False, conflicts=not same))
                    continue
                numbered = []
                for request in call.requests:
                    number += 1
                    numbered.append(NumberedRequest(number, now, call.user, request))
                    rows.append(_request_row(numbered[-1], call.client_key))
                    if isinstance(request, Submit):
                        job_number += 1
                        row = _job_row(request, job_number, call.user, now, rows[-1]["body"])
                        jobs.append(row)
                answers.append(Accepted(tuple(numbered)))
                if call.client_key is not None:
                    keyed[call.user, call.client_key] = tuple(numbered)
            if rows:
                connection.execute(insert(REQUESTS), rows)
            if jobs:
                connection.execute(insert(JOBS), jobs)
        self._last_request, self._last_job = number, job_number
        return answers

    def requests_after(self, number: int) -> list[NumberedRequest]:
        """As the protocol has it."""
        wanted = select(REQUESTS).where(REQUESTS.c.number > number).order_by(REQUESTS.c.number)
        with self._reading() as connection:
            return [_request_of(dict(row)) for row in connection.execute(wanted).mappings()]

    def taken(self) -> int:
        """As the protocol has it."""
        with self._reading() as connection:
            return connection.scalar(select(PROGRESS.c.taken)) or 0

    def commit_step(self, step: WholeStep) -> int:
        """As the protocol has it."""
        numbers = range(self._last_record + 1, self._last_record + 1 + len(step.lines))
        with self._writing() as connection:
            if step.lines:
                rows = [
                    {"number": number, "line": line}
                    for number, line in zip(numbers, step.lines, strict=True)
                ]
                connection.execute(insert(RECORDS), rows)
            for columns, changes in _alike(step.jobs).items():
                change = update(JOBS).where(JOBS.c.job_id == bindparam("changed_job"))
                change = change.values({name: bindparam(name) for name in columns})
                connection.execute(change, changes)
            moved = connection.execute(update(PROGRESS), {"taken": step.taken})
            if not moved.rowcount:
                connection.execute(insert(PROGRESS), {"one": 1, "taken": step.taken})
        self._last_record += len(step.lines)
        return self._last_record

    def records(self, after: int = 0, limit: int | None = None) -> Iterator[tuple[int, str]]:
        """As the protocol has it."""
        wanted = select(RECORDS.c.number, RECORDS.c.line).where(RECORDS.c.number > after)
        wanted = wanted.order_by(RECORDS.c.number)
        with self._reading() as connection:
            rows = connection.execute(wanted if limit is None else wanted.limit(limit))
            for some in rows.partitions(_ROWS_AT_ONCE):
                yield from some

    def last_record(self) -> int:
        """As the protocol has it."""
        return self._last_record

    def keep_snapshot(self, lines: Sequence[str], end: int) -> None:
        """As the protocol has it."""
        with self._writing() as connection:
            connection.execute(SNAPSHOTS.delete())
            row = {"one": 1, "end": end, "lines": "".join(lines)}
            connection.execute(insert(SNAPSHOTS), row)

    def snapshot(self) -> tuple[int, Sequence[str]] | None:
        """As the protocol has it."""
        with self._reading() as connection:
            row = connection.execute(select(SNAPSHOTS.c.end, SNAPSHOTS.c.lines)).first()
        return None if row is None else (row.end, row.lines.splitlines(keepends=True))

    def job(self, job_id: str) -> Row | None:
        """As the protocol has it."""
        with self._reading() as connection:
            wanted = select(JOBS).where(JOBS.c.job_id == job_id)
            row = connection.execute(wanted).mappings().first()
        return None if row is None else dict(row)

    def jobs(self, wanted: JobsWanted) -> list[Row]:
        """As the protocol has it."""
        with self._reading() as connection:
            return [dict(row) for row in connection.execute(_listing(wanted)).mappings()]

    def counts(self, user: str | None = None) -> dict[str, int]:
        """As the protocol has it."""
        wanted = select(JOBS.c.state, func.count()).group_by(JOBS.c.state)
        if user is not None:
            wanted = wanted.where(JOBS.c.user == user)
        with self._reading() as connection:
            return {row[0]: row[1] for row in connection.execute(wanted)}

    def keep_samples(self, samples: Sequence[UseSample]) -> None:
        """As the protocol has it."""
        with self._writing() as connection:
            connection.execute(insert(SAMPLES), [asdict(each) for each in samples])

    def samples(self) -> list[UseSample]:
        """As the protocol has it."""
        wanted = select(SAMPLES).order_by(SAMPLES.c.end_seconds, SAMPLES.c.job_id)
        with self._reading() as connection:
            return [UseSample(**row) for row in connection.execute(wanted).mappings()]

    def spans(self, since_seconds: float, limit: int) -> list[JobSpan]:
        """As the protocol has it."""
        of = JOBS.c
        wanted = select(of.cpus, of.submit_seconds, of.start_seconds, of.end_seconds).where(
            of.end_seconds.is_(None) | (of.end_seconds > since_seconds)
        )
        with self._reading() as connection:
            rows = connection.execute(wanted.order_by(of.number.desc()).limit(limit))
            return [JobSpan(*row) for row in rows]

    def keep_forecasts(self, rows: Sequence[ForecastRow]) -> None:
        """As the protocol has it."""
        ids = [each.job_id for each in rows]
        with self._writing() as connection:
            known = set(
                connection.scalars(select(FORECASTS.c.job_id).where(FORECASTS.c.job_id.in_(ids)))
            )
            fresh = [asdict(each) for each in rows if each.job_id not in known]
            if fresh:
                connection.execute(insert(FORECASTS), fresh)

    def started_forecasts(self, limit: int) -> list[tuple[ForecastRow, float]]:
        """As the protocol has it."""
        both = JOBS.join(FORECASTS, FORECASTS.c.job_id == JOBS.c.job_id)
        wanted = select(FORECASTS, JOBS.c.start_seconds).select_from(both)
        wanted = wanted.where(JOBS.c.start_seconds.is_not(None) & (JOBS.c.attempt == 1))
        wanted = wanted.order_by(JOBS.c.start_seconds.desc()).limit(limit)
        with self._reading() as connection:
            rows = [tuple(row) for row in connection.execute(wanted)]
        return [(ForecastRow(*row[:-1]), row[-1]) for row in reversed(rows)]

    def judged_forecasts(self) -> Judged:
        """As the protocol has it."""
        told = FORECASTS.c
        return self._judged(
            JOBS.c.start_seconds,
            told.low_seconds,
            told.high_seconds,
            JOBS.join(FORECASTS, told.job_id == JOBS.c.job_id),
            JOBS.c.start_seconds.is_not(None) & (JOBS.c.attempt == 1),
        )

    def judged_runtimes(self) -> Judged:
        """As the protocol has it."""
        return self._judged(
            JOBS.c.end_seconds - JOBS.c.start_seconds,
            JOBS.c.low_seconds,
            JOBS.c.high_seconds,
            JOBS,
            JOBS.c.state == "completed",
        )

    def _judged(
        self,
        value: ColumnElement[float],
        low: ColumnElement[float],
        high: ColumnElement[float],
        rows: FromClause,
        came_about: ColumnElement[bool],
    ) -> Judged:
        counts = select(
            func.count(),
            func.sum(case((value.between(low, high), 1), else_=0)),
            func.sum(case((value < low, 1), else_=0)),
        )
        with self._reading() as connection:
            row = connection.execute(counts.select_from(rows).where(came_about)).one()
        return Judged(row[0], row[1] or 0, row[2] or 0)

    def owners(self, job_ids: Collection[str]) -> dict[str, str]:
        """As the protocol has it."""
        wanted = select(JOBS.c.job_id, JOBS.c.user).where(JOBS.c.job_id.in_(job_ids))
        with self._reading() as connection:
            return {row[0]: row[1] for row in connection.execute(wanted)}

    def commands(self) -> Iterator[tuple[str, str]]:
        """As the protocol has it."""
        wanted = select(JOBS.c.job_id, JOBS.c.command).where(JOBS.c.state.not_in(DONE_STATES))
        with self._reading() as connection:
            yield from connection.execute(wanted.order_by(JOBS.c.number))

    def close(self) -> None:
        """As the protocol has it."""
        if self._held is not None:
            self._held.close()
        self._engine.dispose()

    def _asked_before(self, connection: Connection, call: KeyedCall) -> tuple[NumberedRequest, ...]:
        if call.client_key is None:
            return ()
        same = (REQUESTS.c.user == call.user) & (REQUESTS.c.client_key == call.client_key)
        found = connection.execute(select(REQUESTS).where(same).order_by(REQUESTS.c.number))
        return tuple(_request_of(dict(row)) for row in found.mappings())

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._speaking(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """One transaction, durable at its end or undone."""
        with self._turn, self._speaking(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Say as an error of ours what the database refuses.

        Raises
        ------
        StoreUnavailable
            If it cannot be written or read now.
        """
        try:
            yield
        except DBAPIError as error:
            where = self._engine.url.render_as_string(hide_password=True)
            raise StoreUnavailable(
                f"the store {where} cannot be used now: {error.orig}; nothing of it was done"
            ) from error


def _alike(jobs: Mapping[str, Row]) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Changes of jobs by the columns that change: those of one kind are written at once."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for job_id, values in jobs.items():
        groups.setdefault(tuple(sorted(values)), []).append({"changed_job": job_id, **values})
    return groups


def _set_up_sqlite(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _listing(wanted: JobsWanted) -> Select[Any]:
    found = select(JOBS)
    for column, values in (
        (JOBS.c.user, wanted.users),
        (JOBS.c.state, wanted.states),
        (JOBS.c.name, wanted.names),
    ):
        if values:
            found = found.where(column.in_(values))
    if wanted.job_ids is not None:
        found = found.where(JOBS.c.job_id.in_(wanted.job_ids))
    if wanted.before is not None:
        found = found.where(JOBS.c.number < wanted.before)
    if wanted.after is not None:
        found = found.where(JOBS.c.number > wanted.after)
    order = JOBS.c.number.asc() if wanted.oldest_first else JOBS.c.number.desc()
    return found.order_by(order).limit(wanted.limit)


def _wanted(request: Request) -> Request:
    """What a request asks for, whatever ids it was given: these differ each time."""
    if isinstance(request, Submit):
        return replace(request, job=replace(request.job, job_id="", after=()))
    return request


def _request_row(numbered: NumberedRequest, client_key: str | None) -> dict[str, Any]:
    kind, subject, body = _plain(numbered.request)
    return {
        "number": numbered.number,
        "unix_seconds": numbered.unix_seconds,
        "user": numbered.user,
        "client_key": client_key,
        "kind": kind,
        "subject": subject,
        "body": body,
    }


def _plain(request: Request) -> tuple[str, str, str | None]:
    """Kind, subject and body of a request's row."""
    match request:
        case Submit(job, held):
            return ("submit held" if held else "submit"), job.job_id, job.to_json()
        case ForJob(wish, job_id):
            return wish, job_id, None
        case ForNode(wish, node):
            return wish, node, None


def _request_of(row: Row) -> NumberedRequest:
    kind, subject = row["kind"], row["subject"]
    request: Request
    if kind.startswith("submit"):
        request = Submit(CommandJob.from_json(row["body"]), held=kind == "submit held")
    elif kind in set(JobWish):
        request = ForJob(JobWish(kind), subject)
    else:
        request = ForNode(NodeWish(kind), subject)
    return NumberedRequest(row["number"], row["unix_seconds"], row["user"], request)


def _job_row(request: Submit, number: int, user: str, now: float, command: str) -> dict[str, Any]:
    job = request.job
    return {
        "job_id": job.job_id,
        "number": number,
        "user": user,
        "name": job.name,
        "state": "held" if request.held else "pending",
        "cpus": job.cpus,
        "deadline_seconds": None if job.deadline_seconds is None else now + job.deadline_seconds,
        "submit_seconds": now,
        "attempt": 0,
        "command": command,
    }
