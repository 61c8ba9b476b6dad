"""Tokens and accounts: who asks, what they may do; where that and the audit log are durable."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import Executable, insert, select, update

from foresail.live.accounts import Account, account_of, account_of_uid, own_account
from foresail.model.errors import InputError
from foresail.service.store.database import Database
from foresail.service.store.protocol import AUDIT, TOKENS

_PREFIX: Final = "foresail_"
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}")
_BYTES: Final = 32


class Role(StrEnum):
    """Role of a token's holder."""

    READ_ONLY = "read-only"
    """Sees everything, touches nothing."""
    USER = "user"
    """Submits jobs; sees and touches these alone."""
    OPERATOR = "operator"
    """Sees and touches all jobs, and the nodes."""
    ADMIN = "admin"
    """All of it, and tokens, the audit log, and the policy."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token as it is kept: without its secret.

    ``digest`` is the SHA-256 (hex) of the secret. That is enough: it has 256 random bits, of which
    no dictionary can be made, so that a slow or salted hash would protect nothing more.
    Times are Unix seconds; ``expires_seconds`` is None for never.
    """

    token_id: str
    digest: str
    user: str
    role: Role
    label: str
    created_seconds: float
    expires_seconds: float | None = None
    revoked_seconds: float | None = None

    def is_good(self, now: float) -> bool:
        """Return whether it opens anything now."""
        expired = self.expires_seconds is not None and self.expires_seconds <= now
        return self.revoked_seconds is None and not expired


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Action that was done, or tried, and is worth knowing later."""

    unix_seconds: float
    """Time of the action."""
    user: str
    """User who did it; empty if that is not known."""
    address: str
    """Address that it came from."""
    action: str
    """Action: ``token created``, ``token refused``, ``policy changed``, ..."""
    subject: str = ""
    """Object of the action: a token's id, a policy."""
    request_id: str = ""
    """Id of the call, as its answer and the service's own lines name it."""


class Tokens:
    """The tokens of a service, all in memory (it alone changes them), and its audit log.

    They are in the store's database, durable when a call returns.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        wanted = select(TOKENS).order_by(TOKENS.c.created_seconds, TOKENS.c.token_id)
        known = [
            AccessToken(**row | {"role": Role(row["role"])}) for row in database.records(wanted)
        ]
        self._by_digest: Mapping[str, AccessToken] = MappingProxyType(
            {token.digest: token for token in known}
        )

    def all(self) -> Sequence[AccessToken]:
        """All of them, revoked ones among them, in order of creation."""
        return tuple(self._by_digest.values())

    def holder(self, secret: str) -> AccessToken | None:
        """The token of this secret, if it is good now.

        What is looked up is a digest, which whoever guesses cannot steer: how long it takes says
        nothing of the secrets that there are.
        """
        digest = _digest_of(secret)
        token = self._by_digest.get(digest)
        if token is None or not hmac.compare_digest(token.digest, digest):
            return None
        return token if token.is_good(time.time()) else None

    def opens(self, token: AccessToken) -> bool:
        """Return whether a token that was let in is still good."""
        known = self._by_digest.get(token.digest)
        return known is not None and known.is_good(time.time())

    def create(
        self, user: str, role: Role, *, label: str = "", lifetime_seconds: float | None = None
    ) -> tuple[AccessToken, str]:
        """A new token, and its secret, which is not kept."""
        if not _USER.fullmatch(user):
            raise InputError(
                "nobody is called so",
                field="user",
                value=user,
                expected="at most 64 letters, digits and . _ - + @",
            )
        now, secret = time.time(), _PREFIX + secrets.token_urlsafe(_BYTES)
        token = AccessToken(
            token_id=secrets.token_hex(8),
            digest=_digest_of(secret),
            user=user,
            role=role,
            label=label,
            created_seconds=now,
            expires_seconds=None if lifetime_seconds is None else now + lifetime_seconds,
        )
        self._keep(token, insert(TOKENS), asdict(token))
        return token, secret

    def revoke(self, token_id: str) -> AccessToken | None:
        """Let a token open nothing from now on; None if there is none of this id."""
        found = next((each for each in self.all() if each.token_id == token_id), None)
        if found is None or found.revoked_seconds is not None:
            return found
        revoked = replace(found, revoked_seconds=time.time())
        change = update(TOKENS).where(TOKENS.c.token_id == token_id)
        self._keep(revoked, change, {"revoked_seconds": revoked.revoked_seconds})
        return revoked

    def _keep(self, token: AccessToken, change: Executable, values: dict[str, Any]) -> None:
        """Write a change of a token down, then heed it."""
        with self._lock:
            self._database.write(change, values)
            self._by_digest = MappingProxyType({**self._by_digest, token.digest: token})

    def append_audit(self, entry: AuditEntry) -> None:
        """Add to the audit log."""
        self._database.write(insert(AUDIT), asdict(entry))

    def audit(self, before: int | None, limit: int) -> list[tuple[int, AuditEntry]]:
        """The entries below a number, newest first."""
        wanted = select(AUDIT).order_by(AUDIT.c.number.desc()).limit(limit)
        if before is not None:
            wanted = wanted.where(AUDIT.c.number < before)
        rows = self._database.records(wanted)
        return [(row.pop("number"), AuditEntry(**row)) for row in rows]


def _digest_of(secret: str) -> str:
    """Return the stored digest of a secret."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


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
