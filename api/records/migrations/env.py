"""Runs the steps on the connection that `api.records.database.migrate` gives."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=context.config.attributes.get("metadata"),
    render_as_batch=True,  # SQLite changes few things of a table in place
)
with context.begin_transaction():
    context.run_migrations()
