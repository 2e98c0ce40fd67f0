"""The tables of the first release. A new database gets those of `api.records.tables` without migrations."""

revision = "0002"
"""Databases of the development versions have this revision. Revision 0001 was never released."""
down_revision = None
