"""The database of the service: connection, transactions, append-only tables, migrations."""
