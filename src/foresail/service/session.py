"""A session of the service: its folder, whose numbers it gives, whom it serves, one daemon."""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from foresail.control.policy import parse_policy
from foresail.live.accounts import Account, account_of, account_of_uid, own_account
from foresail.live.cluster_contact import PatientCalls
from foresail.live.cluster_plugin import ClusterPlugin, RunContext
from foresail.live.daemon import Daemon
from foresail.live.run_directory import RunHistory
from foresail.model.adapter import ClusterAdapter
from foresail.model.cluster import Cluster, Resources
from foresail.model.errors import ForesailError, InputError
from foresail.model.short_form import part_of
from foresail.model.whole_files import to_be_written, write_durably
from foresail.record.records import Manifest, PolicyChanged
from foresail.record.run_fold import RunFold
from foresail.scenario.beginning import controller_of, manifest_of
from foresail.scenario.engines import engine_of
from foresail.scenario.scenario import Scenario
from foresail.service.configuration import ServiceConfiguration
from foresail.service.exchange import Inbox, StoreLog, recovered
from foresail.service.feed import Feed
from foresail.service.metrics import CycleWatch
from foresail.service.snapshots import SnapshotCache
from foresail.service.store.protocol import StoreUnavailable
from foresail.service.store.sql_store import SqlStore
from foresail.service.tokens import Role


class ServedAccounts:
    """All accounts of the machine each by itself, the service's own alone, or users sharing it."""

    def __init__(self, *, shared_account: bool) -> None:
        self.own = own_account()
        self._shared_account = shared_account
        self.keeps_apart = self.own.uid == 0 and not shared_account
        """True if each user's jobs run as that user."""

    @property
    def says(self) -> str:
        """Return the accounts served, in a sentence."""
        if self.keeps_apart:
            return "each job runs as the account that submits it"
        if self._shared_account:
            return f"users are not kept apart: all jobs run as {self.own.name}"
        return f"{self.own.name} alone is served"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what every user should know of it."""
        return (self.says,) if self._shared_account else ()

    @property
    def socket_mode(self) -> int:
        """Return who may connect on the machine itself: those who share an account have tokens."""
        return 0o666 if self.keeps_apart else 0o600

    def account(self, user: str) -> Account:
        """Return the account of a user's jobs; raises ``InputError`` if the user is not served."""
        if self.keeps_apart:
            return account_of(user)
        if self._shared_account or user == self.own.name:
            return self.own
        raise InputError(
            f"this service serves {self.own.name} alone",
            field="user",
            value=user,
            expected="a service that root runs, or shared_account = true",
        )

    def other_account(self, user: str) -> Account | None:
        """The same, or None where all run as the service's own."""
        return self.account(user) if self.keeps_apart else None

    def caller(self, uid: int) -> tuple[str, Role]:
        """Return the user and role of an account of the machine without a token."""
        if uid in (0, self.own.uid):
            return self.own.name, Role.ADMIN
        if not self.keeps_apart:
            raise InputError(f"no account but {self.own.name} is served without a token")
        return account_of_uid(uid).name, Role.USER


def opened_store(configuration: ServiceConfiguration) -> SqlStore:
    """The store of a service, its schema up to date; raises ``InputError`` if it cannot be used."""
    store = existing_store(configuration)
    if store.moved_to is not None:
        store.close()
        raise InputError(
            f"was moved to {store.moved_to}", field="database", expected="that one, or a new one"
        )
    return store


def existing_store(configuration: ServiceConfiguration) -> SqlStore:
    """The same, though it may have been moved; raises ``InputError`` if it cannot be used."""
    if configuration.database == "sqlite":
        return SqlStore.in_file(StateFolder(configuration.state.absolute()).database)
    return SqlStore.at_address(configuration.database)


def passage_mode() -> int:
    """Return the mode of folders through which others reach theirs, where root runs the service."""
    return 0o711 if os.geteuid() == 0 else 0o700


class StateFolder:
    """The service's folder, besides its database where that is elsewhere.

    ``attempts`` is what is to be known of attempts after their adapter has gone, ``logs`` what
    commands write, ``archive`` the log of jobs that have left the database, ``socket`` where its
    own account reaches the service; ``lock`` is locked while a service uses the folder;
    ``identity`` says which store it belongs to and which numbers of jobs were given in it;
    ``database`` is the store, where it is a file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.attempts = path / "attempts"
        self.logs = path / "logs"
        self.archive = path / "archive"
        self.socket = path / "socket"
        self.lock = path / "lock"
        self.identity = path / "store.json"
        self.database = path / "foresail.db"

    def make(self) -> None:
        """Lay it out; only its owner may look into it.

        Of root's, others can reach what is theirs by its whole path: the folders of their logs.

        Raises ``InputError`` where others could put another in the place of root's.
        """
        if os.geteuid() == 0:
            self._require_that_only_root_replaces_it()
        passage = passage_mode()
        for folder, mode in ((self.path, passage), (self.attempts, 0o700), (self.logs, passage)):
            with to_be_written(folder, "the folder cannot be made"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with to_be_written(folder):
                for file in folder.iterdir() if folder == self.path else ():
                    if file.is_file() and not file.is_symlink():
                        file.chmod(0o600)
                folder.chmod(mode)

    def _require_that_only_root_replaces_it(self) -> None:
        """Whoever can write what is in it has jobs run as anybody."""
        path = self.path.absolute()
        for each in (path, *path.parents, *path.resolve().parents):
            with suppress(FileNotFoundError, NotADirectoryError):
                about = each.lstat()
                is_kept = stat.S_ISLNK(about.st_mode) or about.st_mode & stat.S_ISVTX
                writers = about.st_mode & (0o002 if about.st_gid == 0 else 0o022)
                if about.st_uid != 0 or (writers and not is_kept):
                    raise InputError(
                        f"others than root could replace what is in {each}",
                        field="state",
                        value=self.path,
                        expected="a folder of root's in folders of root's, as /var/lib/foresail",
                    )

    def is_in_use(self) -> bool:
        """Return whether a service uses it."""
        if not self.lock.exists():
            return False
        try:
            with self.alone():
                return False
        except InputError:
            return True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every service away from it; raises ``InputError`` if one uses it."""
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as error:
            raise InputError(
                "another service uses this folder", field="state", value=self.path
            ) from error
        finally:
            os.close(descriptor)


class AcceptedCommands:
    """Commands that the service runs, as a scenario has them: they arrive by requests."""

    def origin(self) -> tuple[str, str | None]:
        """The service itself."""
        return "service", None


def scenario_of_service(configuration: ServiceConfiguration) -> Scenario:
    """Return the scenario of a configuration; the adapter decides on which cluster."""
    return Scenario(None, parse_policy(configuration.policy), commands=AcceptedCommands())


def daemon_of(
    configuration: ServiceConfiguration,
    folder: StateFolder,
    store: SqlStore,
    inbox: Inbox,
    snapshots: SnapshotCache,
    feed: Feed,
    cycles: CycleWatch,
    served: ServedAccounts,
    connecting: PatientCalls[ClusterAdapter],
) -> Daemon:
    """The daemon of a session, as the store's log leaves the run.

    Raises ``ConnectionError`` if the cluster is away, or has not answered yet.
    """
    cluster: ClusterPlugin = part_of("cluster", configuration.cluster).build()
    context = RunContext(
        folder.attempts,
        folder.logs,
        inbox.commands,
        snapshots.note,
        store.keep_samples,
        snapshots.keep_estimates,
        identity=store.identity,
        account_of_job=(lambda job: served.account(job.user)) if served.keeps_apart else None,
    )
    try:
        connect = partial(cluster.connect, context)
        adapter = connecting.made(connect) if cluster.capabilities.is_remote else connect()
        there = adapter.cluster
    except ForesailError:
        raise
    except Exception as error:  # whatever it is, the cluster may be back in a while
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConnectionError(f"the cluster cannot be reached ({why})") from error
    scenario = replace(scenario_of_service(configuration), place=there)
    engine_of(replace(scenario, place="processors"))
    known = recovered(store, scenario.policy_in_force.compares_with)
    is_new, manifest = not len(known.compaction), manifest_of(scenario)
    log = StoreLog(store, manifest if is_new else None, known, inbox, feed, cycles)
    controller = controller_of(scenario, log)
    if not is_new:
        _note_policy(known.run, manifest, log)
        _require_same_processors(known.run.state.cluster, there)
        snapshots.recovered(known.run)
        controller.take_over(known.run)
    log.follow(controller.state)
    history = RunHistory(None, snapshots.note)
    return Daemon(controller, log, adapter, inbox, history, None, snapshots)


def _require_same_processors(before: Cluster, there: Cluster) -> None:
    """Refuse other processors than a run's where they belong to no nodes, which alone may change.

    Memory may be off by a twentieth, as a machine's is under another kernel.
    """
    undivided = [
        {
            each.name: each.total
            for each in cluster.partitions
            if not each.nodes and each.total != Resources()
        }
        for cluster in (before, there)
    ]
    was, found = undivided
    if was.keys() == found.keys() and all(
        (total.cpus, total.gpus) == (found[name].cpus, found[name].gpus)
        and math.isclose(total.memory_bytes, found[name].memory_bytes, rel_tol=0.05)
        for name, total in was.items()
    ):
        return
    value, expected = (
        ", ".join(map(_amount, each.values())) or "named nodes" for each in (found, was)
    )
    raise InputError(
        "is not what this state was begun with, and processors that belong to no nodes stay",
        field="cluster",
        value=value,
        expected=f"{expected}, or another state folder; nodes of local(nodes=1) may change later",
    )


def _amount(total: Resources) -> str:
    gib = total.memory_bytes / 2**30
    return f"{total.cpus:g} cpus, {gib:.3g} GiB and {total.gpus:g} gpus without nodes"


def _note_policy(run: RunFold, manifest: Manifest, log: StoreLog) -> None:
    """Write down that another policy decides from now on than the one in the log."""
    if run.policy != manifest.policy:
        change = PolicyChanged(run.steps, manifest.policy, manifest.starts_tasks)
        run.take(change)
        log.append(change)
        log.commit()


_AT_ONCE: Final = 200
"""Numbers set aside at a time, so that no file is written for each."""

_NUMBER: Final = re.compile("[0-9]+")


class GivenNumbers:
    """Identity of a folder's store, and the highest job number given in it, kept in a file there.

    So an older copy of the database goes on with new numbers, and another one is not taken for it.
    A folder without that file belongs to the first store that comes.

    Raises ``InputError`` if they do not belong together.
    """

    def __init__(self, folder: StateFolder, store: SqlStore) -> None:
        self._path = folder.identity
        self._identity = store.identity
        self._given = _given(folder, store)
        store.pass_over(self._given)
        self._last = self._seen = store.next_number() - 1
        self._writing = threading.Lock()
        self._write(max(self._given, self._last))

    def set_aside(self, number: int) -> None:
        """Let jobs have numbers up to this one: durable when it returns."""
        self._last = number
        if number > self._given:
            with self._writing:
                if number > self._given:
                    self._write(number + _AT_ONCE)

    def look_ahead(self) -> None:
        """Set numbers aside before they are asked for, by how many were since the last look.

        Callers wait for the disk only where suddenly more jobs arrive.
        """
        lately, self._seen = self._last - self._seen, self._last
        if self._given - self._last < 2 * lately:
            with self._writing, suppress(StoreUnavailable):  # whoever needs them hears of it
                self._write(self._last + _AT_ONCE + 4 * lately)

    def settle(self, number: int) -> None:
        """Say that this is the last one, and those set aside behind it were not given."""
        self._write(number)

    def _write(self, given: int) -> None:
        try:
            write_durably(self._path, _text(self._identity, given))
        except OSError as error:
            raise StoreUnavailable(
                f"{self._path} cannot be written: {error.strerror}; nothing was done"
            ) from error
        self._given = given


def adopt(folder: StateFolder, store: SqlStore) -> None:
    """Let a folder that belongs to no store belong to this one."""
    if folder.identity.exists():
        _given(folder, store)
    else:
        write_durably(folder.identity, _text(store.identity, store.next_number() - 1))


def _text(identity: str, given: int) -> bytes:
    return (json.dumps({"identity": identity, "given": given}) + "\n").encode()


def _given(folder: StateFolder, store: SqlStore) -> int:
    """The last number that may have been given in a folder, if it is the store's."""
    begun = [each.name for each in folder.attempts.iterdir()]
    if not folder.identity.exists():
        if not begun and store.counts().get("running"):
            raise InputError(
                "holds nothing of the jobs that run by its database",
                field="state",
                value=folder.path,
                expected="the folder that the service had before",
            )
        found = (_NUMBER.match(name) for name in begun)
        return max((int(each[0]) for each in found if each), default=0)
    try:
        known = json.loads(folder.identity.read_text())
        identity, given = str(known["identity"]), int(known["given"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"cannot be read: {error}", source=folder.identity) from error
    if identity != store.identity:
        raise InputError(
            f"is of another store ({identity[:8]}) than its database ({store.identity[:8]}), "
            "whose jobs would be taken for those of the former",
            field="state",
            value=folder.path,
            expected="the database of before (`foresail db restore` puts a backup of it back), "
            "or a new folder",
        )
    return given
