"""Files of data sets and their rows: both stay, or neither, whatever fails."""

import errno

import pytest
from sqlalchemy import event, select

from api.data_sets.new_file import NewFile
from api.data_sets.photographs import NewPhotograph, PhotographFilters, add_photograph, list_photographs
from api.data_sets.tables import data_set_files
from api.database.database import write_transaction
from api.record.storage.object_pictures import ObjectPictures
from api.record.stored_files import check_same_record, remove_orphans, store_with_rows
from segdec.errors import ConfigError
from tests.api.data_sets.filled_data_set import NOW, photograph_file
from tests.api.record.databases import both_databases


def rows_of(engine):
    with engine.connect() as connection:
        return {bytes(sha256) for sha256 in connection.execute(select(data_set_files.c.sha256)).scalars()}


def listed(filled):
    return filled.read(list_photographs, PhotographFilters(), 0, 10, NOW).photographs


def check_nothing_stored(filled, file):
    assert not filled.stored.contains(file.sha256) and not list(filled.stored.marked())
    assert rows_of(filled.engine) == set() and listed(filled) == []


@both_databases
def test_a_file_is_stored_with_its_row_and_without_a_mark(filled):
    file = photograph_file(1)
    assert filled.add(1).outcome == "added"
    assert filled.stored.get(file.sha256) == file.data
    assert rows_of(filled.engine) == {file.sha256} and not list(filled.stored.marked())
    (shown,) = listed(filled)
    assert (shown.sha256, shown.bytes, shown.width) == (file.sha256.hex(), len(file.data), 48)


def test_a_rejected_change_leaves_nothing(filled):
    file = photograph_file(1)

    def fail(_connection, _data_set_id):
        raise ValueError("rejected")

    with pytest.raises(ValueError, match="rejected"):
        filled.write(fail, files=[file])
    check_nothing_stored(filled, file)


@both_databases
def test_a_failed_commit_leaves_nothing(filled):
    def fail(_connection):
        raise OSError(errno.EIO, "the commit failed")

    event.listen(filled.engine, "commit", fail, once=True)
    with pytest.raises(OSError, match="the commit failed"):
        filled.add(1)
    check_nothing_stored(filled, photograph_file(1))
    assert filled.add(1).outcome == "added"


def test_a_full_disk_leaves_nothing(filled, monkeypatch):
    first, second = photograph_file(1), photograph_file(2)
    put = type(filled.stored).put

    def put_until_full(stored, sha256, data):
        if sha256 == second.sha256:
            raise OSError(errno.ENOSPC, "No space left on device")
        put(stored, sha256, data)

    monkeypatch.setattr(type(filled.stored), "put", put_until_full)
    with pytest.raises(OSError, match="No space left"):
        filled.write(lambda *_: None, files=[first, second])
    check_nothing_stored(filled, first)


def test_a_failed_change_does_not_delete_the_file_of_another_photograph(filled):
    filled.add(1)
    with pytest.raises(ZeroDivisionError):
        filled.write(lambda *_: 1 / 0, files=[photograph_file(1)])
    assert filled.stored.contains(photograph_file(1).sha256) and not list(filled.stored.marked())


def test_a_crash_before_the_commit_is_cleaned_at_the_next_start(filled):
    filled.add(1)
    file = photograph_file(2)
    filled.stored.put(file.sha256, file.data)
    filled.stored.put(photograph_file(1).sha256, photograph_file(1).data)  # a crash after its commit
    with write_transaction(filled.engine) as connection:
        check_same_record(connection, filled.stored, data_set_files)
        remove_orphans(connection, filled.stored, list(filled.stored.marked()), data_set_files)
    assert not filled.stored.contains(file.sha256) and filled.stored.contains(photograph_file(1).sha256)
    assert not list(filled.stored.marked())


def test_a_file_that_another_service_deletes_meanwhile_is_stored_again(filled, monkeypatch):
    file, deleted = photograph_file(1), []
    contains = type(filled.stored).contains

    def contains_after_deletion(stored, sha256):
        if not deleted:
            deleted.append(sha256)
            stored.delete(sha256)
        return contains(stored, sha256)

    monkeypatch.setattr(type(filled.stored), "contains", contains_after_deletion)
    filled.add(1)
    assert deleted == [file.sha256] and filled.stored.get(file.sha256) == file.data


def test_files_of_another_record_are_rejected_before_one_is_deleted(filled):
    file = photograph_file(1)
    filled.stored.write_id("another record")
    filled.stored.put(file.sha256, file.data)
    with (
        pytest.raises(ConfigError, match="belong to the record another record, the database to the record"),
        filled.engine.connect() as connection,
    ):
        check_same_record(connection, filled.stored, data_set_files)
    assert filled.stored.contains(file.sha256)


def test_a_lost_store_is_not_replaced_by_an_empty_one(filled, tmp_path):
    filled.add(1)
    empty = type(filled.stored)(tmp_path / "other")
    with (
        pytest.raises(ConfigError, match=r"belong to the record None.*restore both from one backup"),
        filled.engine.connect() as connection,
    ):
        check_same_record(connection, empty, data_set_files)
    assert empty.read_id() is None


def test_files_in_a_bucket(filled, bucket):
    stored, file = ObjectPictures(f"s3://{bucket}/record/data_sets"), photograph_file(1)
    new = NewPhotograph(file, "a")
    with pytest.raises(ZeroDivisionError):
        store_with_rows(filled.engine, stored, [file], data_set_files, lambda _: 1 / 0)
    assert not stored.contains(file.sha256)
    with filled.engine.connect() as connection:
        check_same_record(connection, stored, data_set_files)
    assert stored.read_id() == "the record"
    store_with_rows(
        filled.engine,
        stored,
        [file],
        data_set_files,
        lambda found: add_photograph(found, filled.id, new, "Ada", NOW),
    )
    assert stored.get(file.sha256) == file.data and not list(stored.marked())


def test_a_file_knows_its_digest_and_size():
    file = NewFile(b"abc", "jsonl")
    assert file.sha256.hex().startswith("ba7816bf") and file.bytes == 3
