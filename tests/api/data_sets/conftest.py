import pytest
from sqlalchemy import insert

from api.data_sets.definitions import create_data_set
from api.data_sets.tables import data_set_files
from api.database.database import write_transaction
from api.record.storage.pictures import FolderPictures
from api.record.stored_files import check_same_record
from api.record.tables import store
from tests.api.data_sets.filled_data_set import NOW, FilledDataSet


@pytest.fixture
def stored(tmp_path):
    """The store of files."""
    return FolderPictures(tmp_path / "data_sets")


@pytest.fixture
def filled(engine, stored):
    """A data set with the classes `scratch` and `dent`, without photographs."""
    with write_transaction(engine) as connection:
        connection.execute(insert(store), {"id": "the record", "bytes": 0})
        check_same_record(connection, stored, data_set_files)
        number = create_data_set(connection, "Brackets", ["scratch", "dent"], "Ada", NOW)
    return FilledDataSet(engine, stored, number)
