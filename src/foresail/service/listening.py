"""Where a service is listened to: an address of the network, and sockets of its machine."""

from __future__ import annotations

import logging
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from foresail.model.errors import InputError
from foresail.model.service_socket import short_name, well_known_socket
from foresail.service.configuration import Listening

_LOG: Final = logging.getLogger("foresail.service")


@contextmanager
def network_listener(listen: Listening) -> Iterator[socket.socket]:
    """The socket of an address; raises ``InputError`` if it cannot be had."""
    try:
        listener = socket.create_server(
            (listen.host, listen.port),
            family=socket.AF_INET6 if ":" in listen.host else socket.AF_INET,
        )
    except OSError as error:
        raise InputError(
            f"cannot be listened on: {error.strerror}",
            field="listen",
            value=f"{listen.host}:{listen.port}",
        ) from error
    with listener:  # asyncio leaves delays on where the protocol of a socket is not spelled out
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield listener


@contextmanager
def machine_listeners(
    own: Path, wanted: Path | None, mode: int
) -> Iterator[dict[Path, socket.socket]]:
    """The sockets for accounts of this machine, by path: they are gone afterwards.

    Parameters
    ----------
    own
        In the service's folder, which is no other service's.
    wanted
        A further one; None for the well-known one of this account, where it can be had.
    mode
        Who may connect.

    Raises
    ------
    InputError
        If one of them cannot be had.
    """
    found: dict[Path, socket.socket] = {}
    with ExitStack() as stack:
        found[own] = stack.enter_context(_bound(own, mode))
        further = wanted or well_known_socket(os.geteuid())
        if further != own:
            try:
                if wanted is None and not further.parent.exists():
                    further.parent.mkdir()
                    further.parent.chmod(0o755)  # whatever this process keeps to itself otherwise
                found[further] = stack.enter_context(_bound(further, mode))
            except (InputError, OSError) as error:
                if wanted is not None:
                    raise
                _LOG.info("%s is not listened on: %s", further, error)
        yield found


@contextmanager
def _bound(path: Path, mode: int) -> Iterator[socket.socket]:
    """A socket at a path, in place of one that nobody listens on."""
    try:
        with short_name(path) as name, socket.socket(socket.AF_UNIX) as listener:
            _make_room(path, name)
            listener.bind(name)
            path.chmod(mode)  # before anybody can connect: it does not listen yet
            try:
                yield listener
            finally:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be listened on: {error.strerror}", field="listen.socket", value=path
        ) from error


def _make_room(path: Path, name: str) -> None:
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return
        with socket.socket(socket.AF_UNIX) as trial:
            try:
                trial.connect(name)
            except ConnectionRefusedError:
                path.unlink()
