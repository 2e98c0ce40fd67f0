"""The tables of the first version: a new database gets them from `api.database.schema` without migrations."""

revision = "0001"
down_revision = None
