"""Opening the store that a configuration names."""

from __future__ import annotations

from foresail.service.configuration import ServiceConfiguration
from foresail.service.session import StateFolder
from foresail.service.store.sql_store import SqlStore


def opened_store(configuration: ServiceConfiguration) -> SqlStore:
    """The store of a service, its schema up to date.

    Raises
    ------
    InputError
        If it cannot be used.
    """
    if configuration.database == "sqlite":
        return SqlStore.in_file(StateFolder(configuration.state.absolute()).database)
    return SqlStore.at_address(configuration.database)
