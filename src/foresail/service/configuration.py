"""The service's configuration: a TOML file, checked whole before anything is begun."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from foresail.control.policy import parse_policy
from foresail.model.documents import parsed_toml, text_of
from foresail.model.errors import ForesailError, InputError, naming
from foresail.model.registry import load_plugin
from foresail.model.short_form import misfit, part_of

DEFAULT_POLICY: Final = "foresail"
OBSERVING_POLICY: Final = "external,similar"
"""Policy of clusters that decide themselves, where none is named."""

FALLBACK_POLICY: Final = "easy,recent,incremental"
FALLBACK_OBSERVING: Final = "external,recent"
"""Policies that decide where one fails or is too slow; the latter where the cluster decides."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Listening(_Section):
    """Addresses on which the service listens.

    Anything but loopback takes ``tls_certificate`` and ``tls_key``, or ``behind_proxy``: a proxy of
    the operator's own that speaks TLS to everybody else. ``socket`` is where accounts of this
    machine reach it, besides the one in its folder; the well-known place by default.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8451
    socket: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine is heard."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


class RequestLimits(_Section):
    """Limits on what callers may ask for.

    ``requests_per_second`` and ``burst`` are of each token or account, ``body_bytes`` of each
    request; ``pending_jobs`` of each user. ``connections`` are all at a time; half as many are of
    one address, or of one account of this machine.
    """

    requests_per_second: Annotated[float, Field(gt=0)] = 1000.0
    burst: Annotated[int, Field(gt=0)] = 2000
    body_bytes: Annotated[int, Field(gt=0)] = 1_000_000
    pending_jobs: Annotated[int, Field(gt=0)] = 100_000
    connections: Annotated[int, Field(ge=8)] = 800
    event_streams: Annotated[int, Field(gt=0)] = 200
    event_streams_per_caller: Annotated[int, Field(gt=0)] = 20


class Hooks(_Section):
    """Programs that the service runs, as its own account and without a shell."""

    mail: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    """Sends mail about jobs: a program and its first arguments, behind which come ``-s``, a subject
    and whom it is for."""


class ServiceConfiguration(_Section):
    """Configuration of a service."""

    state: Path = Path("foresail-state")
    """Folder of its database, of the outputs of jobs, and of what watches them."""
    database: str = "sqlite"
    """``sqlite`` in that folder, or the address of a PostgreSQL database."""
    cluster: str = "local(nodes=1)"
    """Cluster that jobs run on, in short form."""
    policy: str = DEFAULT_POLICY
    """Scheduler, predictor and correction; this alone may differ after a reload."""
    plugins: tuple[Path, ...] = ()
    """Files that hold policies of one's own, relative to the configuration file."""
    cycle_seconds: Annotated[float, Field(gt=0)] = 30.0
    """Longest time between two passes, whatever happens."""
    decision_seconds: Annotated[float, Field(gt=0)] = 10.0
    """Time that a pass may take to decide; a policy that takes longer three times in a row, or
    fails, gives way to EASY until another is asked for."""
    remembered_jobs: Annotated[int, Field(ge=1000)] = 5_000
    """Number of jobs, those that ended last, kept in memory; all are in the database."""
    shared_account: bool = False
    """True if users with tokens are served whose jobs run as the service's own account."""
    keep_jobs: Annotated[int, Field(ge=1)] | None = None
    keep_days: Annotated[float, Field(gt=0)] | None = None
    """Limits of what is kept: so many jobs that ended last, and for so many days: earlier ones
    leave the database, their outputs are removed, and their log goes into the archive. All stays if
    neither is given."""
    open_metrics: bool = False
    """True if metrics take no token."""
    log_format: Literal["text", "json"] = "text"
    """Format of the service's own log: text, or a JSON object a line."""
    listen: Listening = Listening()
    limits: RequestLimits = RequestLimits()
    """Limits of the HTTP interface."""
    hooks: Hooks = Hooks()
    """Commands that are run when something happens to a job."""


def read_configuration(path: Path | None) -> ServiceConfiguration:
    """The configuration of a file; without one, what everything is by default.

    Raises ``InputError`` if the file cannot be read, or names what is not known; says which field.
    """
    if path is None:
        return ServiceConfiguration()
    document = parsed_toml(text_of(path), path)
    try:
        configuration = ServiceConfiguration.model_validate(document)
    except ValidationError as error:
        raise misfit(error, path) from error
    with naming(path):
        for plugin in configuration.plugins:
            load_plugin(path.parent / plugin)
        require_usable(configuration)
    return configuration


def fitted(configuration: ServiceConfiguration, *, decides_itself: bool) -> ServiceConfiguration:
    """Return a configuration whose policy leaves to the cluster what that decides itself.

    Raises ``InputError`` if another one was named.
    """
    is_named = "policy" in configuration.model_fields_set
    if decides_itself and not is_named:
        return configuration.model_copy(update={"policy": OBSERVING_POLICY})
    scheduler = parse_policy(configuration.policy).scheduler.build()
    if scheduler.starts_nothing is not decides_itself:
        raise InputError(
            f"does not fit the cluster {configuration.cluster}",
            field="policy",
            value=configuration.policy,
            expected=f"{OBSERVING_POLICY}, for it starts its jobs itself"
            if decides_itself
            else "one that starts jobs",
        )
    return configuration


def require_usable(configuration: ServiceConfiguration) -> None:
    """Refuse a policy or a cluster that is not known, and an open door.

    Raises ``InputError`` if it cannot be used; names the field.
    """
    try:
        parse_policy(configuration.policy)
    except ForesailError as error:
        raise InputError(str(error), field="policy", value=configuration.policy) from error
    try:
        part_of("cluster", configuration.cluster)
    except ForesailError as error:
        raise InputError(str(error), field="cluster", value=configuration.cluster) from error
    mail = configuration.hooks.mail
    if mail and not (Path(mail[0]).is_absolute() and os.access(mail[0], os.X_OK)):
        raise InputError(
            "is no program", field="hooks.mail", value=mail[0], expected="its absolute path"
        )
    listen = configuration.listen
    if (listen.tls_certificate is None) is not (listen.tls_key is None):
        raise InputError(
            "tls_certificate and tls_key must be given together",
            field="listen",
            expected="both, or neither",
        )
    if not (listen.is_loopback or listen.tls_certificate or listen.behind_proxy):
        raise InputError(
            "would send tokens over a network in the clear",
            field="listen.host",
            value=listen.host,
            expected="a loopback address, tls_certificate and tls_key, or behind_proxy = true",
        )
