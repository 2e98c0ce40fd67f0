"""Picture stores: a folder, and a bucket that may be missing or unreachable."""

import hashlib

import pytest

from api.record.storage.object_pictures import ObjectPictures
from api.record.storage.pictures import FolderPictures
from segdec.errors import ConfigError

DATA = b"a photograph"
SHA256 = hashlib.sha256(DATA).digest()
OTHER = hashlib.sha256(b"another").digest()


@pytest.fixture(params=["folder", "bucket"])
def pictures(request, tmp_path):
    if request.param == "folder":
        return FolderPictures(tmp_path)
    return ObjectPictures(f"s3://{request.getfixturevalue('bucket')}/line3/record")


def test_pictures_are_stored_and_deleted(pictures):
    assert pictures.get(SHA256) is None and not pictures.contains(SHA256)
    assert pictures.is_empty()
    for sha256, data in ((SHA256, DATA), (SHA256, DATA), (OTHER, b"another")):
        pictures.put(sha256, data)
    assert pictures.get(SHA256) == DATA and pictures.contains(SHA256)
    assert set(pictures.marked()) == {SHA256, OTHER} and not pictures.is_empty()
    pictures.clear_marks(OTHER)
    pictures.clear_marks()
    assert set(pictures.marked()) == {SHA256} and pictures.contains(OTHER)
    pictures.delete(SHA256, OTHER, hashlib.sha256(b"never stored").digest())
    assert pictures.get(SHA256) is None and not pictures.contains(OTHER)
    assert set(pictures.marked()) == set()
    assert pictures.read_id() is None
    pictures.write_id("one")
    assert pictures.is_empty()
    assert pictures.read_id() == "one"


def test_records_share_a_bucket_by_prefix(bucket, object_store):
    first, other = ObjectPictures(f"s3://{bucket}/a/"), ObjectPictures(f"s3://{bucket}")
    first.write_id("one")
    with pytest.raises(ConnectionError, match="already exists"):
        first.write_id("two")
    other.put(SHA256, DATA)
    assert not first.contains(SHA256) and other.read_id() is None
    name = SHA256.hex()
    assert object_store.keys(bucket) == sorted(["a/store-id", f"{name[:2]}/{name}", f"unsettled/{name}"])
    object_store.put(bucket, "unsettled/strange", b"")
    assert list(other.marked()) == [SHA256]


def all_calls(pictures):
    """Yields the calls that change a store or report that it is complete."""
    yield pictures.read_id
    yield lambda: pictures.write_id("one")
    yield lambda: pictures.put(SHA256, DATA)
    yield lambda: pictures.clear_marks(SHA256)
    yield lambda: list(pictures.marked())
    yield lambda: pictures.delete(SHA256)


def test_a_missing_bucket_and_an_unreachable_store_are_errors(bucket, object_store, monkeypatch):
    pictures = ObjectPictures(f"s3://{bucket}/record")
    pictures.put(SHA256, DATA)
    object_store.remove(bucket)
    for call in all_calls(pictures):
        with pytest.raises(ConnectionError, match=f"s3://{bucket}/record: "):
            call()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    pictures = ObjectPictures(f"s3://{bucket}")
    for call in (*all_calls(pictures), lambda: pictures.get(SHA256), lambda: pictures.contains(SHA256)):
        with pytest.raises(ConnectionError, match=r"^[^\n]*$"):
            call()


@pytest.mark.parametrize("url", ["", "s3:///a", "s3://B_cket", "gs://bucket", "s3://user@bucket/a?b=c"])
def test_an_invalid_url_is_rejected(url):
    with pytest.raises(ConfigError, match=r"cannot be used\. Expected s3://BUCKET/PREFIX"):
        ObjectPictures(url)


def test_files_of_other_programs_among_the_marks_are_ignored(tmp_path):
    pictures = FolderPictures(tmp_path)
    pictures.put(SHA256, DATA)
    for name in (".nfs0000000000a1", ".DS_Store", "lost+found"):
        (tmp_path / "unsettled" / name).touch()
    assert list(pictures.marked()) == [SHA256]


@pytest.mark.parametrize("end", [FolderPictures.clear_marks, FolderPictures.delete])
@pytest.mark.parametrize("there", [True, False])
def test_another_service_may_remove_a_mark_during_put(tmp_path, monkeypatch, end, there):
    pictures, other = FolderPictures(tmp_path), FolderPictures(tmp_path)
    if there:
        other.put(SHA256, DATA)

    def write_and_end(path, data):
        monkeypatch.undo()
        path.write_bytes(data)
        end(other, SHA256)

    monkeypatch.setattr("api.record.storage.pictures._write", write_and_end)
    pictures.put(SHA256, DATA)
    assert pictures.get(SHA256) == DATA
