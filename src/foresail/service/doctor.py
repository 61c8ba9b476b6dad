"""Checks of a service's surroundings, before or while it runs."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foresail.explain.compiling import are_compiled
from foresail.live.adapters.local.cluster import LocalCluster
from foresail.live.adapters.local.machine import permitted_cgroups
from foresail.model.errors import ForesailError
from foresail.model.short_form import part_of
from foresail.model.words import duration, memory_size
from foresail.service.configuration import ServiceConfiguration
from foresail.service.session import require_engine
from foresail.service.state_folder import StateFolder, passage_mode
from foresail.service.store.database import Database
from foresail.service.store.sql_store import SqlStore
from foresail.service.tokens import ServedAccounts
from foresail.service.upkeep import faults_of

_LITTLE_BYTES: Final = 500e6
_EARLIEST_UNIX_SECONDS: Final = 1.7e9
"""No clock that is right shows an earlier time than this: November 2023."""


@dataclass(frozen=True, slots=True)
class Found:
    """Finding about one thing that the service needs."""

    what: str
    """Subject, in a word or two."""
    says: str
    """Present condition, in words."""
    remedy: str = ""
    """Remedy; empty if it is well."""


def examined(configuration: ServiceConfiguration) -> Iterator[Found]:
    """Look at policy, state folder, store, address, clock and machine, one after the other."""
    folder = StateFolder(configuration.state.absolute())
    try:
        require_engine(configuration)
        yield Found("policy", configuration.policy)
    except ForesailError as error:
        yield Found("policy", str(error), "name another one: `foresail policies`")
    yield _folder(folder.path)
    runs = folder.is_in_use()
    yield Found("accounts", ServedAccounts(shared_account=configuration.shared_account).says)
    yield Found("service", "runs" if runs else "does not run now")
    if configuration.database == "sqlite":
        yield _store(folder.database)
    else:
        database = Database.at_address(configuration.database)
        database.look()
        yield Found("store", database.away or database.name, "start it" if database.away else "")
    yield _address(configuration, runs=runs)
    is_late = time.time() < _EARLIEST_UNIX_SECONDS
    remedy = "set it: deadlines and forecasts go by it" if is_late else ""
    yield Found("clock", time.strftime("%Y-%m-%d %H:%M:%S"), remedy)
    there = next(each for each in (folder.path, *folder.path.parents) if each.exists())
    free = shutil.disk_usage(there).free
    remedy = "make room: where nothing can be written, nothing is accepted"
    yield Found("disk", f"{free / 1e9:,.1f} GB free", remedy if free < _LITTLE_BYTES else "")
    if hasattr(os, "pidfd_open"):
        yield Found("kernel", os.uname().release)
    else:
        yield Found("kernel", "knows no process descriptors", "Linux 5.3 or newer is needed")
    says = "compiled" if are_compiled() else "compiled beside the first run, for a minute"
    yield Found("forecasts", says)
    cgroups = permitted_cgroups()
    says = (
        "none are permitted: what leaves a job's session is found below its watcher, counted and "
        "ended with it, and by its environment if the watcher is killed"
    )
    if cgroups is not None:  # a machine that permits none is no fault
        limits = ", ".join(sorted(cgroups.controllers)) or "no controller to limit them"
        says = f"one for each job below {cgroups.parent}; {limits}"
    yield Found("cgroups", says)
    yield from _resources(configuration)


def _folder(path: Path) -> Found:
    if not path.exists():
        return Found("state folder", f"{path} will be made")
    if not os.access(path, os.W_OK | os.X_OK):
        return Found("state folder", f"{path} cannot be written", "run as its owner")
    mode = passage_mode()
    if stat.S_IMODE(path.stat().st_mode) & ~mode:
        return Found("state folder", f"others may look into {path}", f"chmod {mode:o} {path}")
    return Found("state folder", str(path))


def _store(path: Path) -> Found:
    if not path.exists():
        return Found("store", "is still to be made")
    try:
        store = SqlStore.in_file(path)
    except ForesailError as error:
        return Found("store", str(error), "put back a copy, or another `state` folder")
    try:
        faults = list(faults_of(store))
    finally:
        store.close()
    if faults:
        return Found("store", faults[0], "`foresail db check` lists all of it")
    return Found("store", "holds together")


def _address(configuration: ServiceConfiguration, *, runs: bool) -> Found:
    listen = configuration.listen
    where = f"{listen.host}:{listen.port}"
    if runs or listen.port == 0:
        return Found("address", where)
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    with socket.socket(family) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((listen.host, listen.port))
        except OSError as error:
            return Found("address", f"{where}: {error.strerror}", "another `listen.port`")
    return Found("address", f"{where} is free")


def _resources(configuration: ServiceConfiguration) -> Iterator[Found]:
    """Check what jobs are given of memory and gpus, and what keeps them to it."""
    cluster = part_of("cluster", configuration.cluster).build()
    if not isinstance(cluster, LocalCluster):
        return
    total, chosen = cluster.total, cluster.parameters
    cgroups = permitted_cgroups() if chosen.cgroups else None
    held = f"jobs are looked at every {duration(chosen.sample_seconds)} and may hold more between"
    if cgroups is not None and "memory" in cgroups.controllers:
        held = "the kernel holds jobs to it"
    kept = f"{memory_size(total.memory_bytes)} for jobs that ask for some; {held}"
    yield Found("memory", f"{kept}; what names none has no limit and is not counted")
    if total.gpus:
        how = "a job is given its own by CUDA_VISIBLE_DEVICES; nothing keeps it from others"
        yield Found("gpus", f"{total.gpus:g}; {how}")
    else:
        yield Found("gpus", "none: nvidia-smi lists none, and `cluster` names none")
