"""Whom a service serves, and as which account of its machine it runs what they submit."""

from __future__ import annotations

from foresail.live.accounts import Account, account_of, account_of_uid, own_account
from foresail.live.command_job import CommandJob
from foresail.model.errors import InputError
from foresail.service.tokens import Role


class ServedAccounts:
    """All accounts of the machine each by itself, the service's own alone, or users sharing it."""

    def __init__(self, *, shared_account: bool) -> None:
        self.own = own_account()
        self._shared_account = shared_account
        self.keeps_apart = self.own.uid == 0 and not shared_account
        """Whether each user's jobs run as that user."""

    @property
    def says(self) -> str:
        """Who it is, in a sentence."""
        if self.keeps_apart:
            return "each job runs as the account that submits it"
        if self._shared_account:
            return f"users are not kept apart: all jobs run as {self.own.name}"
        return f"{self.own.name} alone is served"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What every user should know of it."""
        return (self.says,) if self._shared_account else ()

    @property
    def socket_mode(self) -> int:
        """Who may connect on the machine itself: those who share an account were given tokens."""
        return 0o666 if self.keeps_apart else 0o600

    def account(self, user: str) -> Account:
        """As which account a user's jobs run; raises ``InputError`` if the user is not served."""
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

    def account_of_job(self, job: CommandJob) -> Account:
        """As which account a job runs; raises ``InputError`` as ``account`` does."""
        return self.account(job.user)

    def caller(self, uid: int) -> tuple[str, Role]:
        """Which user an account of the machine is without a token, and what that may do.

        Raises ``InputError`` if it is not served.
        """
        if uid in (0, self.own.uid):
            return self.own.name, Role.ADMIN
        if not self.keeps_apart:
            raise InputError(f"no account but {self.own.name} is served without a token")
        return account_of_uid(uid).name, Role.USER
