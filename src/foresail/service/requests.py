"""What people ask of the service: durable before it is acknowledged, and taken in order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from foresail.live.command_job import CommandJob


@dataclass(frozen=True, slots=True)
class Submit:
    """A job is to run; in state held if ``held``."""

    job: CommandJob
    held: bool = False


class JobWish(StrEnum):
    """What may be wished of a job that is not done with."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class ForJob:
    """Something is wished of a job."""

    wish: JobWish
    job_id: str


class NodeWish(StrEnum):
    """What may be wished of a node."""

    DRAIN = "drain"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class ForNode:
    """Something is wished of a node."""

    wish: NodeWish
    node: str


Request: TypeAlias = Submit | ForJob | ForNode


@dataclass(frozen=True, slots=True)
class NumberedRequest:
    """A request as it was accepted."""

    number: int
    """Its place in the order of all requests, from 1."""
    unix_seconds: float
    """When it was accepted."""
    user: str
    """Who asked."""
    request: Request
    """What was asked for."""
