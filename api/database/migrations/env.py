"""Runs the migrations on the connection of `api.database.database.migrate`."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=context.config.attributes.get("metadata"),
    render_as_batch=True,  # SQLite can change few properties of a table in place
)
with context.begin_transaction():
    context.run_migrations()
