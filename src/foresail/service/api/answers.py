"""What the interface answers with; times are Unix seconds, durations seconds, memory bytes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

JobState = Literal[
    "held", "pending", "running", "completed", "failed", "limit", "cancelled", "withdrawn"
]
"""Where a job is in its life."""


class ReasonAnswer(BaseModel):
    """Why a job waits."""

    code: str = Field(examples=["no_room"], description="One of a closed list.")
    sentence: str = Field(examples=["needs 8 cpus and 4 are free"])
    numbers: dict[str, float | str] = Field(examples=[{"cpus": 8, "free": 4}])


class BeliefAnswer(BaseModel):
    """What is believed of a job's runtime: quantiles at 10, 50 and 90 %."""

    low_seconds: float | None
    median_seconds: float | None
    high_seconds: float | None


class JobAnswer(BaseModel):
    """A job as it stands."""

    job_id: str = Field(examples=["17", "18_3"])
    name: str
    user: str
    state: JobState
    cpus: int
    command: str
    directory: str
    after: list[str] = Field(description="Jobs that must have completed before.")
    requested_seconds: float | None
    submit_seconds: float
    start_seconds: float | None
    end_seconds: float | None
    attempt: int = Field(description="How often it was started.")
    exit_code: int | None
    places: str | None = Field(description="Where it runs or ran, and how many tasks.")
    because: str | None = Field(description="Why it will never run.")
    belief: BeliefAnswer | None
    reason: ReasonAnswer | None = Field(
        default=None, description="Why it waits, as of the last cycle."
    )
    planned_start_seconds: float | None = None
    warnings: list[str] = Field(default_factory=list)


class JobsAnswer(BaseModel):
    """Jobs, in the order asked for."""

    jobs: list[JobAnswer]
    next: int | None = Field(
        default=None,
        description="`before` (or `after`, oldest first) of the next page; null at the end.",
    )


class SubmittedAnswer(BaseModel):
    """Jobs as they were accepted, durably."""

    jobs: list[JobAnswer]


class WishedAnswer(BaseModel):
    """Of which jobs something was asked, durably."""

    job_ids: list[str]


class StoryLineAnswer(BaseModel):
    """One thing that happened to a job."""

    unix_seconds: float
    sentence: str


class StoryAnswer(BaseModel):
    """What happened to a job, in order."""

    job_id: str
    lines: list[StoryLineAnswer]


class NodeAnswer(BaseModel):
    """A node, and what is free of it."""

    name: str
    partition: str
    state: Literal["up", "down", "drained"]
    cpus: float
    memory_bytes: float
    gpus: float
    free_cpus: float
    free_memory_bytes: float
    free_gpus: float
    attributes: dict[str, str]


class NodesAnswer(BaseModel):
    """All nodes; none where the cluster does not tell them apart."""

    nodes: list[NodeAnswer]


class NodeWishAnswer(BaseModel):
    """Of which node something was asked, durably."""

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
    running: int
    pending: int
    jobs_by_state: dict[str, int]
    nodes: list[NodeAnswer]
    remarks: list[str]


class WhoamiAnswer(BaseModel):
    """Whose token this is."""

    user: str
    role: str
    token_id: str
    expires_seconds: float | None


class HealthAnswer(BaseModel):
    """How the service is."""

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
    """Something that was done, or tried."""

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
    """What decides from now on."""

    policy: str


JobId = Annotated[str, Field(pattern=r"^[0-9]{1,18}(_[0-9]{1,9})?$")]
"""A job's id: a number, and for a member of an array its index."""
