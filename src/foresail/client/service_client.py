"""Speaks to a service: one method a question, answers as the service gives them."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias
from urllib.parse import quote

import httpx

from foresail.client.connection import Connection, is_socket
from foresail.model.errors import ForesailError, InputError
from foresail.model.whole_files import short_name

Answer: TypeAlias = dict[str, Any]

LIVING_STATES: Final = ("running", "pending", "held")

_RETRY_EVERY_SECONDS: Final = 0.5
_PAGE: Final = 500
_IDS: Final = 200


class ServiceRefusal(ForesailError):  # noqa: N818 - it says what it is
    """The service has refused a request, and says why.

    ``problem`` is its answer (RFC 9457): title, status, detail, and the field that is wrong, if one
    is.
    """

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.status = int(problem.get("status", 0))
        self.problem = dict(problem)
        super().__init__(str(problem.get("detail") or problem.get("title") or "refused"))


class NoAnswer(ForesailError):  # noqa: N818 - it says what it is
    """The service cannot be reached."""


@dataclass(frozen=True, slots=True)
class ServiceEvent:
    """One event of the service's stream: its number, its kind, and what it says."""

    number: int
    kind: str
    says: Answer


class ServiceClient:
    """A connection to a service; to be closed, or entered.

    A service that does not answer is asked again for ``patience_seconds``, as it may be about to be
    restarted; what is asked for twice is done once. One answer may take ``timeout_seconds``.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        patience_seconds: float = 10.0,
        timeout_seconds: float = 30.0,
    ) -> None:
        self._address = connection.address
        self._patience_seconds = patience_seconds
        self._open = ExitStack()
        self._http = self._open.enter_context(
            httpx.Client(
                base_url="http://localhost" if is_socket(self._address) else self._address,
                transport=self._way(),
                headers={"Authorization": f"Bearer {connection.token}"} if connection.token else {},
                timeout=timeout_seconds,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._open.close()

    def _way(self) -> httpx.BaseTransport | None:
        """Return the transport to a socket; None for addresses that httpx knows itself."""
        if not is_socket(self._address):
            return None
        try:
            name = self._open.enter_context(short_name(Path(self._address)))
        except OSError as error:
            raise NoAnswer(f"no socket at {self._address}: {error.strerror}") from error
        return httpx.HTTPTransport(uds=name)

    def submit(
        self, jobs: Sequence[Mapping[str, Any]], *, client_key: str | None = None
    ) -> list[Answer]:
        """Submit jobs, all or none; returns them as they were accepted, durably.

        Fields are as in a jobs file; ``after`` may name ids, and names among these. ``client_key``
        is the caller's own name for this call; asked again, it is answered as before.

        Raises ``ServiceRefusal`` if a field is wrong, with its name, or it is too much, and
        ``NoAnswer`` if the service cannot be reached.
        """
        headers = {"Idempotency-Key": client_key or uuid.uuid4().hex}
        answer = self._ask("POST", "/v1/jobs", json={"jobs": list(jobs)}, headers=headers)
        return list(answer["jobs"])

    def jobs(
        self,
        *,
        states: Iterable[str] = (),
        users: Iterable[str] = (),
        names: Iterable[str] = (),
        job_ids: Sequence[str] | None = None,
        order: Literal["newest", "oldest", "next"] = "newest",
        most: int | None = None,
    ) -> Iterator[Answer]:
        """Jobs, page by page; of these ids alone, where an array's stands for its members."""
        wanted = _wanted(states, users, names) | {"order": order}
        forward, left = "before" if order == "newest" else "after", most
        for some in _portions(job_ids):
            there: int | None = None
            while left is None or left > 0:
                limit = _PAGE if left is None else min(_PAGE, left)
                place = {} if there is None else {forward: there}
                asked = {**wanted, **some, **place, "limit": limit}
                page = self._ask("GET", "/v1/jobs", params=asked)
                yield from page["jobs"]
                left = None if left is None else left - len(page["jobs"])
                there = page.get("next")
                if there is None:
                    break

    def count_jobs(
        self,
        *,
        states: Iterable[str] = (),
        users: Iterable[str] = (),
        names: Iterable[str] = (),
        job_ids: Sequence[str] | None = None,
    ) -> int:
        """Return how many such jobs there are."""
        wanted = {**_wanted(states, users, names), "limit": 1, "count": True}
        asked = (
            self._ask("GET", "/v1/jobs", params={**wanted, **some}) for some in _portions(job_ids)
        )
        return sum(page["total"] for page in asked)

    def job(self, job_id: str) -> Answer:
        """A job as it stands, why it waits, and when it will start."""
        return self._ask("GET", f"/v1/jobs/{quote(job_id)}")

    def cancel(self, job_id: str) -> Answer:
        """Withdraw a job, or stop it."""
        return self._ask("POST", f"/v1/jobs/{quote(job_id)}/cancel")

    def hold(self, job_id: str) -> Answer:
        """Keep a waiting job from starting."""
        return self._ask("POST", f"/v1/jobs/{quote(job_id)}/hold")

    def release(self, job_id: str) -> Answer:
        """Let a held job start again."""
        return self._ask("POST", f"/v1/jobs/{quote(job_id)}/release")

    def story(self, job_id: str) -> Answer:
        """Return the story of a job, in sentences."""
        return self._ask("GET", f"/v1/jobs/{quote(job_id)}/story")

    def waiting(self, job_id: str) -> Answer:
        """Return why a job waits: its place, what runs and goes before it, and what would help."""
        return self._ask("GET", f"/v1/jobs/{quote(job_id)}/wait")

    def forecast(
        self, job_id: str, *, arrivals: bool = True, before: float | None = None
    ) -> Answer:
        """Return when a job will start and end, by the odds, and whether before a moment."""
        path = f"/v1/jobs/{quote(job_id)}/forecast"
        asked = {} if before is None else {"before": before}
        return self._ask("GET", path, params={"arrivals": arrivals, **asked})

    def what_if(self, asked: Mapping[str, Any]) -> Answer:
        """Return what would be if a job asked for something else, or were submitted."""
        return self._ask("POST", "/v1/what-if", json=dict(asked))

    def suggested_request(self, job_id: str, risk: float) -> Answer:
        """Return the time to ask for so that the job outlives it with this probability at most."""
        path = f"/v1/jobs/{quote(job_id)}/suggested-request"
        return self._ask("GET", path, params={"risk": risk})

    def output(self, job_id: str, stream: str = "out", offset: int = 0) -> tuple[str, int, bool]:
        """Return a job's output from a byte on: the text, where it ends, and if that is all."""
        wanted = {"stream": stream, "offset": offset}
        answer = self._request("GET", f"/v1/jobs/{quote(job_id)}/logs", params=wanted)
        end = int(answer.headers["X-Next-Offset"])
        return answer.text, end, answer.headers.get("X-Ended") == "true"

    @property
    def is_here(self) -> bool:
        """True where the service is reached by a socket of this machine."""
        return is_socket(self._address)

    def cluster(self) -> Answer:
        """Return the resources of the cluster, and how they are used now."""
        return self._ask("GET", "/v1/cluster")

    def plan(self, most: int = 200) -> Answer:
        """Return running and next jobs of everybody; other users' jobs nameless."""
        return self._ask("GET", "/v1/plan", params={"most": most})

    def nodes(self) -> list[Answer]:
        """Every node, and what is free there."""
        return list(self._ask("GET", "/v1/nodes")["nodes"])

    def drain(self, node: str, until: float | None = None) -> Answer:
        """Let nothing new start on a node, which should be used again then (Unix seconds)."""
        known = {} if until is None else {"until": until}
        return self._ask("POST", f"/v1/nodes/{quote(node)}/drain", params=known)

    def resume(self, node: str) -> Answer:
        """Let jobs start on a node again."""
        return self._ask("POST", f"/v1/nodes/{quote(node)}/resume")

    def whoami(self) -> Answer:
        """Return who asks, and what that may do."""
        return self._ask("GET", "/v1/whoami")

    def create_token(
        self, user: str, role: str, label: str = "", lifetime_seconds: float | None = None
    ) -> Answer:
        """A new token, with its secret."""
        asked = {"user": user, "role": role, "label": label, "lifetime_seconds": lifetime_seconds}
        return self._ask("POST", "/v1/tokens", json=asked)

    def tokens(self) -> list[Answer]:
        """All tokens there ever were, without their secrets."""
        return list(self._ask("GET", "/v1/tokens")["tokens"])

    def revoke_token(self, token_id: str) -> Answer:
        """Let a token open nothing from now on."""
        return self._ask("DELETE", f"/v1/tokens/{quote(token_id)}")

    def events(self, after: int | None = None) -> Iterator[ServiceEvent]:
        """Yield events as they happen; behind an event of this number, or from now on.

        Goes on where it was when the service is away for a while.

        Raises ``NoAnswer`` if it is away for longer than the client's patience.
        """
        last = after
        while True:
            headers = {} if last is None else {"Last-Event-ID": str(last)}
            stream = self._patiently(partial(self._stream, "/v1/events", headers))
            try:
                for event in _events_of(stream.iter_lines()):
                    last = event.number
                    yield event
            except httpx.TransportError:
                continue
            finally:
                stream.close()

    def wait(self, job_ids: Iterable[str]) -> list[Answer]:
        """Wait until jobs finish; returns them as they stand then, in this order.

        An array's id stands for its members.
        """
        wanted = list(dict.fromkeys(job_ids))
        for each in wanted:
            if not self.count_jobs(job_ids=[each]):
                raise ServiceRefusal({"status": 404, "detail": f"there is no job {each}"})
        pause = 0.05
        while self.count_jobs(job_ids=wanted, states=LIVING_STATES):
            time.sleep(pause)
            pause = min(2.0, pause * 1.5)
        return [job for each in wanted for job in self.jobs(job_ids=[each], order="oldest")]

    def _ask(self, method: str, path: str, **given: Any) -> Answer:
        return dict(self._request(method, path, **given).json())

    def _request(self, method: str, path: str, **given: Any) -> httpx.Response:
        answer = self._patiently(lambda: self._http.request(method, path, **given))
        _refuse(answer)
        return answer

    def _stream(self, path: str, headers: Mapping[str, str]) -> httpx.Response:
        request = self._http.build_request("GET", path, headers=dict(headers), timeout=None)
        answer = self._http.send(request, stream=True)
        if answer.is_error:
            answer.read()
            _refuse(answer)
        return answer

    def _patiently(self, attempt: Callable[[], httpx.Response]) -> httpx.Response:
        """Ask again while there is no answer, or none but that the service is not ready."""
        until = time.monotonic() + self._patience_seconds
        while True:
            try:
                answer = attempt()
                if (
                    answer.status_code != httpx.codes.SERVICE_UNAVAILABLE
                    or time.monotonic() >= until
                ):
                    return answer
            except UnicodeEncodeError as error:
                value = error.object[: error.end][-20:]
                raise InputError("is no text (UTF-8)", value=value) from error
            except httpx.TransportError as error:
                if time.monotonic() >= until:
                    raise NoAnswer(
                        f"no answer from the service at {self._address}: {error}; "
                        "is `foresail serve` running there?"
                    ) from error
            time.sleep(_RETRY_EVERY_SECONDS)


def _wanted(states: Iterable[str], users: Iterable[str], names: Iterable[str]) -> dict[str, Any]:
    return {"state": [*states], "user": [*users], "name": [*names]}


def _portions(job_ids: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    """So many ids at once as fit into an address; all jobs where none are named."""
    if job_ids is None:
        yield {}
    for begin in range(0, len(job_ids or ()), _IDS):
        yield {"job": list(job_ids or ())[begin : begin + _IDS]}


def _refuse(answer: httpx.Response) -> None:
    if not answer.is_error:
        return
    try:
        problem = answer.json()
    except ValueError:
        problem = {}
    if not isinstance(problem, dict) or "title" not in problem:
        problem = {"title": f"{answer.status_code} {answer.reason_phrase}"}
    raise ServiceRefusal({"status": answer.status_code, **problem})


def _events_of(lines: Iterable[str]) -> Iterator[ServiceEvent]:
    """The events of a stream of server-sent events; comments are skipped."""
    number, kind, data = 0, "message", list[str]()
    for line in lines:
        if not line:
            if data:
                yield ServiceEvent(number, kind, json.loads("\n".join(data)))
            kind, data = "message", []
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                number = int(value)
            elif name == "event":
                kind = value
            elif name == "data":
                data.append(value)
