"""The variables that commands begin with: of a login, or of the person who runs them herself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from foresail.live.accounts import Account

_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_OURS: Final = "FORESAIL_"
"""What variables begin with that are Foresail's: a token is none of a job's business."""


def login_environment(account: Account) -> Mapping[str, str]:
    """What an account's commands get: who it is, where programs are, language and time zone."""
    of_the_machine = {
        name: value
        for name, value in os.environ.items()
        if name in ("LANG", "TZ") or name.startswith("LC_")
    }
    return {
        **of_the_machine,
        "PATH": _PATH,
        "HOME": account.home,
        "USER": account.name,
        "LOGNAME": account.name,
        "SHELL": account.shell,
    }


def persons_environment() -> Mapping[str, str]:
    """The variables of who runs her own commands, but for what is Foresail's."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
