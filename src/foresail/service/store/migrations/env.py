"""How Alembic runs migrations: in the transaction of who asks (``foresail.service.store``)."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], target_metadata=None)
context.run_migrations()
