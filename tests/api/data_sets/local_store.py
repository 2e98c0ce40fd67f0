"""The data sets without a service."""

import asyncio

from api.data_sets.tables import data_set_files
from api.record.stored_files import store_with_rows


class LocalStore:
    """Has the methods of `DataSetStore` that imports use."""

    def __init__(self, engine, stored):
        self.engine, self.stored = engine, stored

    async def read(self, query, *args):
        with self.engine.connect() as connection:
            return query(connection, *args)

    async def write(self, change, *args, files=()):
        return await asyncio.to_thread(
            store_with_rows,
            self.engine,
            self.stored,
            files,
            data_set_files,
            lambda connection: change(connection, *args),
        )
