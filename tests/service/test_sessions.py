"""Sessions of a service: one daemon after the other, until a signal comes."""

import os
import signal
from types import SimpleNamespace

import pytest

from foresail.service.configuration import ServiceConfiguration
from foresail.service.succession import Sessions


class LeavingDaemon:
    """Ends by itself, for another policy or with a fault; a signal comes just then."""

    def __init__(self, fault):
        self._fault = fault
        self.was_interrupted = True

    def work(self):
        if self._fault is not None:
            raise self._fault


@pytest.mark.parametrize("fault", [None, RuntimeError("the policy's own")])
def test_a_signal_while_a_daemon_leaves_ends_the_service(tmp_path, fault):
    """Not the next session: whoever sent it waits for the end."""
    sessions = Sessions(ServiceConfiguration(state=tmp_path / "state"), None)
    inbox = SimpleNamespace(begin_again=lambda: None)
    sessions.parts = SimpleNamespace(inbox=inbox, snapshots=SimpleNamespace())
    begun = []

    def daemon():
        assert not begun, "another session begins"
        begun.append(True)
        sessions._next = sessions.configuration
        return LeavingDaemon(fault)

    sessions._daemon = daemon
    sessions.work()
    assert begun


def test_a_daemon_tells_of_a_signal_whatever_ended_it():
    from foresail.live.daemon import Interrupts

    interrupts = Interrupts()
    with interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
    assert interrupts.count == 2
