"""Readers of a run do not wait for ever for a daemon that has no time."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import pytest

from foresail.service import picture
from foresail.service.api.problems import refusal_of
from foresail.service.picture import DaemonBusy, Gallery


def gallery():
    """One of a daemon that never comes by."""
    return Gallery(lambda: None, lambda sentence: None, 30.0, lambda controller: 0.0)


def test_a_question_that_the_daemon_has_no_time_for_is_answered_as_busy(monkeypatch):
    """As in a first pass, which compiles kernels; it was a fault of the service (500)."""
    monkeypatch.setattr(picture, "_FIRST_PATIENCE_SECONDS", 0.02)
    with pytest.raises(DaemonBusy) as raised:
        asyncio.run(gallery().ask(lambda controller, jobs: None))
    refused = refusal_of(raised.value)
    assert refused.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "Retry-After" in refused.headers


def test_reasons_are_done_without_where_the_daemon_has_no_time(monkeypatch):
    monkeypatch.setattr(picture, "_REASONS_PATIENCE_SECONDS", 0.02)
    assert asyncio.run(gallery().reasons(["1"])) == {}
