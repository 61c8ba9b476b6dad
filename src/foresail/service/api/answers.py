"""Answers of the interface; times are Unix seconds, durations seconds, memory bytes."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from foresail.explain.forecast import Range
from foresail.explain.reason_words import reason_words
from foresail.model.decision import Reason
from foresail.model.words import CLUSTER_JOB_ID

JobState = Literal[
    "held", "pending", "running", "completed", "failed", "limit", "cancelled", "withdrawn"
]
"""Stage of a job in its life."""


_HELD = "Share of the last starts forecast so far ahead within their range, where these are few."


class RangeAnswer(BaseModel):
    """Quantiles at 10, 50 and 90 %; null where it is not to be expected at all."""

    p10: float | None
    p50: float | None
    p90: float | None

    @classmethod
    def from_quantiles(cls, quantiles: Range) -> RangeAnswer:
        """Make a range from the quantiles of a forecast."""
        low, median, high = (
            None if math.isinf(each) else each
            for each in (quantiles.low, quantiles.median, quantiles.high)
        )
        return cls(p10=low, p50=median, p90=high)


class ReasonAnswer(BaseModel):
    """Reason why a job waits."""

    code: str = Field(examples=["no_room"], description="One of a closed list.")
    sentence: str = Field(examples=["needs 8 cpus and 4 are free"])
    numbers: dict[str, float | str] = Field(examples=[{"cpus": 8, "free": 4}])

    @classmethod
    def from_reason(cls, reason: Reason, now: float) -> ReasonAnswer:
        """Put a reason into words, as of a moment (Unix seconds)."""
        sentence = reason_words(reason, now)
        return cls(code=str(reason.code), sentence=sentence, numbers=dict(reason.numbers))


class ChancesAnswer(BaseModel):
    """Probabilities that a job has started by a moment."""

    within_hour: float
    today: float = Field(description="By midnight of the service's clock.")
    before: float | None = Field(description="Before the moment asked about, if one was.")


class ForecastAnswer(BaseModel):
    """Forecast of a waiting or running job; times are Unix seconds."""

    job_id: str
    made_seconds: float = Field(description="As things stood then.")
    sentence: str = Field(
        examples=["starts between 14:10 and 16:30, most likely about 15:00; 1 in 10 later"],
        description="By the service's clock.",
    )
    is_known: bool = Field(
        default=True, description="False: too little is known yet for its ranges to say anything."
    )
    held: float | None = Field(default=None, description=_HELD, examples=[0.43])
    remarks: list[str] = Field(
        default_factory=list,
        examples=[["mostly: how long job 17 runs"]],
        description="What makes the range wide, and how far it can be relied on.",
    )
    chances: ChancesAnswer | None = Field(
        default=None, description="That it has started by then; of one that waits."
    )
    start: RangeAnswer | None = Field(default=None, description="Null for a job that runs.")
    end: RangeAnswer
    runtime: RangeAnswer | None = Field(default=None, description="Seconds, of one that waits.")
    never: float | None = Field(
        default=None, description="Share of futures in which it never starts."
    )
    overruns: float | None = Field(
        default=None,
        description="Probability that it needs longer than requested; not of one that waits.",
    )
    misses: float | None = Field(
        default=None, description="Probability that it misses its deadline."
    )


class PlannedJobAnswer(BaseModel):
    """A job that runs or is to, as a bar; nameless where it is another user's."""

    job_id: str | None
    name: str | None
    user: str | None
    cpus: float
    start: RangeAnswer
    end: RangeAnswer
    is_known: bool = Field(default=True, description="Whether enough is known for its ranges.")
    held: float | None = Field(default=None, description=_HELD)
    deadline_seconds: float | None
    misses: float | None = Field(description="Probability that it misses its deadline.")


class PlanAnswer(BaseModel):
    """Running jobs, and those expected to start next; times are Unix seconds."""

    now_seconds: float
    cpus: float
    pending: int = Field(description="How many wait, listed below or not.")
    running: list[PlannedJobAnswer]
    waiting: list[PlannedJobAnswer] = Field(description="By expected start.")


class HelpAnswer(BaseModel):
    """Change that would let a job start earlier, and what it would ask for then."""

    sentence: str
    cpus: int | None = None
    requested_seconds: float | None = None


class WaitAnswer(BaseModel):
    """Explanation of a wait; others' jobs are nameless. Times are Unix seconds."""

    job_id: str
    now_seconds: float
    reason: ReasonAnswer | None
    place: int | None = Field(
        description="Among those that may start, by the policy's order, else by expected start."
    )
    pending: int = Field(description="How many may start as soon as there is room.")
    running: list[PlannedJobAnswer] = Field(description="The first to end.")
    running_in_all: int
    before: list[PlannedJobAnswer] = Field(description="What goes before it; the first of them.")
    forecast: ForecastAnswer | None
    belief: RangeAnswer | None = Field(description="Runtime (seconds) that is believed.")
    requested_seconds: float | None = Field(description="Its time limit.")
    helps: list[HelpAnswer]


class UsageAnswer(BaseModel):
    """Use of the cluster, in bins of equal length."""

    begin_seconds: float
    bin_seconds: float
    cpus: float
    used_cpus: list[float]
    started: list[int]
    wait_seconds: list[float | None] = Field(description="Of those that started, in the mean.")


class WhatIfAnswer(BaseModel):
    """Forecasts as things are, and if they were otherwise."""

    now: ForecastAnswer | None = Field(description="Null for a job that is not submitted.")
    then: ForecastAnswer


class SuggestedRequestAnswer(BaseModel):
    """Requested time that is suggested."""

    job_id: str
    risk: float = Field(description="Probability of needing longer.")
    requested_seconds: float | None = Field(description="Null: no time is long enough.")
    requested_now_seconds: float | None
    risk_now: float | None = Field(description="Of needing longer than is requested now.")


class JudgedAnswer(BaseModel):
    """Comparison of stated ranges with what came about."""

    told: int = Field(description="How many have come about, or should have.")
    stated: float = Field(default=0.8, description="Share that should be in their range.")
    within: float | None = Field(description="Share that was.")
    below: float | None = Field(description="Share that came before its range began.")
    above: float | None = Field(description="Share that came after its range had ended.")


class HorizonAnswer(JudgedAnswer):
    """The same for starts that were forecast to be so far off."""

    below_seconds: float | None = Field(
        description="Off by less than this, and no less than that before; null for any more."
    )


class PredictionsAnswer(BaseModel):
    """Quality of past predictions."""

    runtimes: JudgedAnswer
    starts: JudgedAnswer = Field(description="As forecast when jobs were submitted.")
    ends: JudgedAnswer = Field(description="The same of ends.")
    starts_by_horizon: list[HorizonAnswer] = Field(
        description="As forecast then and at each doubling of their wait."
    )


class JobAnswer(BaseModel):
    """A job as it stands."""

    job_id: str = Field(examples=["17", "18_3"])
    number: int | None = Field(None, description="Of a member of an array: an id for it alone.")
    name: str
    user: str
    state: JobState
    cpus: int
    command: str
    directory: str
    after: list[str] = Field(description="Jobs that it waits for.")
    dependencies: str = Field(
        "", description="How: `afterok:17:18,afterany:19,singleton`, all of which must hold."
    )
    begin_seconds: float | None = Field(None, description="It starts no earlier.")
    output: str | None = Field(None, description="File for what it writes; its log if null.")
    errors: str | None = Field(None, description="File for its errors; that of its output if null.")
    most_at_once: int | None = Field(None, description="How many of its array run at once.")
    requested_seconds: float | None
    tasks: int = Field(description="How many tasks share its cpus, memory and gpus.")
    memory_bytes: float | None = Field(
        default=None,
        description="Kept free for it, and what all of its processes may hold together at most.",
    )
    gpus: int = Field(default=0, description="For it alone.")
    deadline_seconds: float | None = Field(default=None, description="When it should be done.")
    submit_seconds: float
    start_seconds: float | None
    end_seconds: float | None
    attempt: int = Field(description="How often it was started.")
    exit_code: int | None
    places: str | None = Field(description="Where it runs or ran, and how many tasks.")
    because: str | None = Field(description="Why it ended as it did, or will never run.")
    belief: RangeAnswer | None = Field(description="Runtime (seconds) that is believed.")
    forecast: ForecastAnswer | None = None
    reason: ReasonAnswer | None = Field(
        default=None, description="Why it waits, as of the last cycle."
    )
    planned_start_seconds: float | None = None
    log_is_cut: bool = Field(
        default=False, description="Of one job: whether some of what it wrote was left out."
    )
    warnings: list[str] = Field(default_factory=list)
    now_seconds: float | None = Field(
        default=None, description="When this was computed, by the clock of all these times."
    )


class JobsAnswer(BaseModel):
    """Jobs, in the order asked for."""

    jobs: list[JobAnswer]
    next: int | None = Field(
        default=None,
        description="`before` of the next page (`after`, oldest or next first); null at the end.",
    )
    total: int | None = Field(
        default=None, description="How many there are on all pages, if that was asked."
    )


class SubmittedAnswer(BaseModel):
    """Jobs as they were accepted, durably."""

    jobs: list[JobAnswer]


class AskedAnswer(BaseModel):
    """Ids of jobs for which a command was stored durably."""

    job_ids: list[str]


class StoryLineAnswer(BaseModel):
    """One thing that happened to a job."""

    unix_seconds: float
    sentence: str


class StoryAnswer(BaseModel):
    """Story of a job, in order."""

    job_id: str
    lines: list[StoryLineAnswer]


class NodeAnswer(BaseModel):
    """A node, and what is free of it."""

    name: str
    partition: str
    state: Literal["up", "down", "drained"]
    until_seconds: float | None = Field(
        default=None, description="When one that is drained should be used again, if that was said."
    )
    cpus: float
    memory_bytes: float
    gpus: float
    free_cpus: float
    free_memory_bytes: float
    free_gpus: float
    attributes: dict[str, str]


class NodesAnswer(BaseModel):
    """All nodes; a partition that does not distinguish them is one."""

    nodes: list[NodeAnswer]


class NodeAskedAnswer(BaseModel):
    """Name of a node for which a command was stored durably."""

    node: str


class ClusterAnswer(BaseModel):
    """The cluster as it is used now."""

    unix_seconds: float
    policy: str
    is_draining: bool
    cpus: float
    free_cpus: float
    memory_bytes: float
    free_memory_bytes: float
    gpus: float
    free_gpus: float
    running: int
    pending: int
    jobs_by_state: dict[str, int]
    nodes: list[NodeAnswer]
    remarks: list[str]


class WhoamiAnswer(BaseModel):
    """Identity of the caller."""

    user: str
    role: str
    token_id: str | None = Field(description="None for an account of the service's machine.")
    expires_seconds: float | None
    remarks: list[str] = Field(description="What every user should know.")


class HealthAnswer(BaseModel):
    """Health of the service."""

    status: Literal["live"] = "live"
    version: str
    remarks: list[str] = Field(description="What people should know though it works.")


class TokenAnswer(BaseModel):
    """A token, without its secret."""

    token_id: str
    user: str
    role: Literal["read-only", "user", "operator", "admin"]
    label: str
    created_seconds: float
    expires_seconds: float | None
    revoked_seconds: float | None


class TokensAnswer(BaseModel):
    """All tokens there ever were."""

    tokens: list[TokenAnswer]


class NewTokenAnswer(TokenAnswer):
    """A new token with its secret, which is shown this once."""

    secret: str


class AuditEntryAnswer(BaseModel):
    """Action that was done, or tried."""

    number: int
    unix_seconds: float
    user: str
    address: str
    action: str
    subject: str
    request_id: str


class AuditAnswer(BaseModel):
    """The audit log, newest first."""

    entries: list[AuditEntryAnswer]
    next: int | None


class PolicyAnswer(BaseModel):
    """Policy that decides from now on."""

    policy: str


_OWN_ID = "[0-9]{1,18}(_[0-9]{1,9})?"
JobId = Annotated[str, Field(pattern=rf"^({_OWN_ID}|{CLUSTER_JOB_ID.pattern})$")]
"""A job's id: a number, and for a member of an array its index; ``slurm:84`` of a cluster's own."""
