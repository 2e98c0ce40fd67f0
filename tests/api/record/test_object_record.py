"""A record with its pictures in an object store."""

import hashlib
from contextlib import ExitStack

import pytest
from sqlalchemy import select

from api.database.database import open_database
from api.record.storage.object_pictures import ObjectPictures
from api.record.tables import audit, inspections, pictures
from segdec.errors import ConfigError
from segdec.images import encode_png
from tests.api.conftest import PNG, ServiceClient, part_image
from tests.api.record.databases import sqlite_only


@pytest.fixture
def location(bucket):
    return f"s3://{bucket}/record"


@pytest.fixture
def serve(make_app, database_url, location, tmp_path, monkeypatch):
    """Starts a service that records into the bucket, without a pause after a failure."""
    monkeypatch.setattr("api.record.record.REOPEN_S", 0.0)

    def make(mode="required", **settings):
        settings = {"record_folder": tmp_path / "record", "record_pictures": location, **settings}
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
def test_pictures_are_stored_in_the_bucket(serve, part, bucket, object_store, tmp_path):
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
def test_orphaned_pictures_are_removed_at_the_start(serve, part, location, bucket, object_store):
    other = encode_png(part_image(brightness=90))
    with serve() as client:
        inspect(client, part)
    left = ObjectPictures(location)  # by services killed before their transaction, and after it
    left.put(hashlib.sha256(other).digest(), other)
    left.put(hashlib.sha256(part).digest(), part)
    with serve() as client:
        assert object_store.keys(bucket) == sorted([key_of(part), "record/store-id"])
        assert client.get("/v1/records/1/image").content == part


@sqlite_only
def test_an_outage_of_the_store_rejects_required_recording(serve, part, database_url, object_store):
    with ExitStack() as stack:
        with object_store.stopped():
            client, optional = (stack.enter_context(serve(mode)) for mode in ("required", "best-effort"))
            assert inspect(client, part).status_code == 503
        answered = [inspect(one, part).json()["record_id"] for one in (client, optional)]
        with object_store.stopped():
            refused = inspect(client, part)
            assert (refused.status_code, refused.json()["code"]) == (503, "record_unavailable")
            assert "its pictures cannot be written" in refused.json()["detail"]
            assert client.get("/v1/records/1/image").status_code == 503
            answer = inspect(optional, part).json()
            assert answer["record_id"] is None and "not recorded" in answer["warnings"][-1]
        answered.append(inspect(client, part).json()["record_id"])
    assert {*answered} <= {number for (number,) in rows(database_url, inspections.c.id)}


def test_a_missing_object_is_lost_but_a_missing_bucket_is_an_outage(
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
def test_the_bucket_of_another_record_is_rejected(serve, bucket, object_store):
    object_store.put(bucket, "record/store-id", b"another")
    with serve():
        pass  # a record without pictures takes the name that it finds
    object_store.put(bucket, "record/store-id", b"a third")
    with pytest.raises(ConfigError, match=rf"s3://{bucket}/record belong to the record a third"), serve():
        pass
