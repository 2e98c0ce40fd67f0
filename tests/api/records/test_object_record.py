"""A record whose pictures lie in an object store, beside either database."""

import hashlib
from contextlib import ExitStack

import pytest
from sqlalchemy import select

from api.records.database import open_database
from api.records.storage.object_pictures import ObjectPictures
from api.records.tables import audit, inspections, pictures
from segdec.errors import ConfigError
from segdec.images import encode_png
from tests.api.conftest import ServiceClient, part_image
from tests.api.records.databases import sqlite_only

PNG = {"Content-Type": "image/png"}


@pytest.fixture
def place(bucket):
    return f"s3://{bucket}/record"


@pytest.fixture
def serve(make_app, database_url, place, tmp_path, monkeypatch):
    """Starts a service that records there, and tries again at once what failed."""
    monkeypatch.setattr("api.records.record.REOPEN_S", 0.0)

    def make(mode="required", **settings):
        settings = {"record_folder": tmp_path / "record", "record_pictures": place, **settings}
        return ServiceClient(make_app(record=mode, record_database=database_url, **settings))

    return make


def inspect(client, photograph, query=""):
    return client.post(f"/v1/inspect{query}", content=photograph, headers=PNG)


def rows(url, *columns):
    engine = open_database(url)
    with engine.connect() as connection:
        found = connection.execute(select(*columns)).all()
    engine.dispose()
    return found


def key_of(photograph):
    name = hashlib.sha256(photograph).hexdigest()
    return f"record/{name[:2]}/{name}"


@sqlite_only
def test_pictures_go_to_the_bucket_and_come_back(serve, part, bucket, object_store, tmp_path):
    with serve() as client:
        first = inspect(client, part, "?part_id=7").json()
        assert inspect(client, part, "?part_id=7").json()["repeated"]
        image = client.get(f"/v1/records/{first['record_id']}/image")
    assert image.content == part
    assert object_store.keys(bucket) == sorted([key_of(part), "record/store-id"])
    assert not (tmp_path / "record" / "pictures").exists()
    with serve() as client:  # the same record
        assert inspect(client, part, "?part_id=7").json()["repeated"]


@sqlite_only
def test_what_was_left_without_a_row_is_swept_at_the_start(serve, part, place, bucket, object_store):
    other = encode_png(part_image(brightness=90))
    with serve() as client:
        inspect(client, part)
    left = ObjectPictures(place)  # of a service that was killed before its transaction, and of one after it
    left.put(hashlib.sha256(other).digest(), other)
    left.put(hashlib.sha256(part).digest(), part)
    with serve() as client:
        assert object_store.keys(bucket) == sorted([key_of(part), "record/store-id"])
        assert client.get("/v1/records/1/image").content == part


@sqlite_only
def test_nothing_is_answered_unrecorded_while_the_store_is_gone(serve, part, database_url, object_store):
    with serve() as client, serve("best-effort") as generous:
        answered = [inspect(client, part).json()["record_id"]]
        with object_store.stopped():
            refused = inspect(client, part)
            assert (refused.status_code, refused.json()["code"]) == (503, "record_unavailable")
            assert "its pictures cannot be written" in refused.json()["detail"]
            assert client.get("/v1/records/1/image").status_code == 503
            answer = inspect(generous, part).json()
            assert answer["record_id"] is None and "not recorded" in answer["warnings"][-1]
        answered.append(inspect(client, part).json()["record_id"])
    assert {*answered} <= {number for (number,) in rows(database_url, inspections.c.id)}


@sqlite_only
def test_a_start_without_the_store_waits_for_it(serve, part, object_store):
    with ExitStack() as stack:
        with object_store.stopped():
            client = stack.enter_context(serve())
            assert inspect(client, part).status_code == 503
        assert inspect(client, part).status_code == 200


def test_an_object_that_is_missing_is_lost_and_a_bucket_is_not(
    serve, part, database_url, bucket, object_store
):
    with serve() as client:
        inspect(client, part)
        object_store.remove(bucket)
        gone = client.get("/v1/records/1/image")
        assert (gone.status_code, gone.json()["code"]) == (503, "record_unavailable")
        object_store.make(bucket)  # empty, as one that was restored badly
        assert client.get("/v1/records/1/image").status_code == 503
        assert rows(database_url, pictures.c.state) == [("kept",)]
        object_store.put(bucket, "record/store-id", b"any")
        lost = client.get("/v1/records/1/image")
        assert (lost.status_code, lost.json()["code"]) == (404, "picture_lost")
    assert rows(database_url, pictures.c.state) == [("lost",)]
    assert rows(database_url, audit.c.what) == [("lose a picture",)]


@sqlite_only
def test_the_bucket_of_another_record_is_refused(serve, bucket, object_store):
    object_store.put(bucket, "record/store-id", b"another")
    with serve():
        pass  # a record without pictures takes the name that it finds
    object_store.put(bucket, "record/store-id", b"a third")
    with pytest.raises(ConfigError, match=rf"s3://{bucket}/record belong to the record a third"), serve():
        pass
