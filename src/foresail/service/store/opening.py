"""Opening the store that a configuration names."""

from __future__ import annotations

from foresail.model.errors import InputError
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
    store = existing_store(configuration)
    if store.moved_to is not None:
        store.close()
        raise InputError(
            f"was moved to {store.moved_to}", field="database", expected="that one, or a new one"
        )
    return store


def existing_store(configuration: ServiceConfiguration) -> SqlStore:
    """The same, though it may have been moved.

    Raises
    ------
    InputError
        If it cannot be used.
    """
    if configuration.database == "sqlite":
        return SqlStore.in_file(StateFolder(configuration.state.absolute()).database)
    return SqlStore.at_address(configuration.database)
