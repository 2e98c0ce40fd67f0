"""Where pictures lie: what both stores do alike, and what a bucket does when it is gone."""

import hashlib

import pytest

from api.records.storage.object_pictures import ObjectPictures
from api.records.storage.pictures import FolderPictures
from segdec.errors import ConfigError

DATA = b"a photograph"
SHA256 = hashlib.sha256(DATA).digest()
OTHER = hashlib.sha256(b"another").digest()


@pytest.fixture(params=["folder", "bucket"])
def pictures(request, tmp_path):
    if request.param == "folder":
        return FolderPictures(tmp_path)
    return ObjectPictures(f"s3://{request.getfixturevalue('bucket')}/line3/record")


def test_a_picture_is_kept_until_it_is_deleted(pictures):
    assert pictures.get(SHA256) is None and not pictures.contains(SHA256)
    pictures.put(SHA256, DATA)
    pictures.put(SHA256, DATA)
    pictures.put(OTHER, b"another")
    assert pictures.get(SHA256) == DATA and pictures.contains(SHA256)
    pictures.delete(SHA256, OTHER, hashlib.sha256(b"never there").digest())
    assert pictures.get(SHA256) is None and not pictures.contains(OTHER)
    assert set(pictures.marked()) == set()


def test_what_is_not_settled_is_found_again(pictures):
    assert set(pictures.marked()) == set()
    for sha256, data in ((SHA256, DATA), (SHA256, DATA), (OTHER, b"another")):
        pictures.put(sha256, data)
    assert set(pictures.marked()) == {SHA256, OTHER}
    pictures.clear_marks(OTHER)
    assert set(pictures.marked()) == {SHA256}
    pictures.clear_marks(SHA256, OTHER)
    pictures.clear_marks()
    assert set(pictures.marked()) == set()
    assert pictures.get(OTHER) == b"another"


def test_a_store_knows_its_record(pictures):
    assert pictures.read_id() is None
    pictures.write_id("one")
    assert pictures.read_id() == "one"


def test_a_bucket_is_named_once_and_shared_by_prefix(bucket, object_store):
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


def ask_everything(pictures):
    """Asks a store for everything that would change it or say that it is whole."""
    yield pictures.read_id
    yield lambda: pictures.write_id("one")
    yield lambda: pictures.put(SHA256, DATA)
    yield lambda: pictures.clear_marks(SHA256)
    yield lambda: list(pictures.marked())
    yield lambda: pictures.delete(SHA256)


def test_a_bucket_that_is_gone_is_no_empty_one(bucket, object_store):
    pictures = ObjectPictures(f"s3://{bucket}/record")
    pictures.put(SHA256, DATA)
    object_store.remove(bucket)
    for ask in ask_everything(pictures):
        with pytest.raises(ConnectionError, match=f"s3://{bucket}/record: "):
            ask()


def test_a_store_that_does_not_answer_is_an_error_of_all_pictures(bucket, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    pictures = ObjectPictures(f"s3://{bucket}")
    for ask in (*ask_everything(pictures), lambda: pictures.get(SHA256), lambda: pictures.contains(SHA256)):
        with pytest.raises(ConnectionError, match=r"^[^\n]*$"):
            ask()


@pytest.mark.parametrize(
    "url",
    ["", "s3:///a", "s3://B_cket", "gs://bucket", "s3://user@bucket/a?b=c"],
)
def test_places_that_are_none(url):
    with pytest.raises(ConfigError, match=r"cannot be used\. Expected s3://BUCKET/PREFIX"):
        ObjectPictures(url)


def test_files_of_others_among_the_marks_are_left_alone(tmp_path):
    pictures = FolderPictures(tmp_path)
    pictures.put(SHA256, DATA)
    for name in (".nfs0000000000a1", ".DS_Store", "lost+found"):
        (tmp_path / "unsettled" / name).touch()
    assert list(pictures.marked()) == [SHA256]


@pytest.mark.parametrize("end", [FolderPictures.clear_marks, FolderPictures.delete])
@pytest.mark.parametrize("there", [True, False])
def test_a_mark_that_another_service_removes_meanwhile_is_no_error(tmp_path, monkeypatch, end, there):
    pictures, other = FolderPictures(tmp_path), FolderPictures(tmp_path)
    if there:
        other.put(SHA256, DATA)

    def write_and_end(path, data):
        monkeypatch.undo()
        path.write_bytes(data)
        end(other, SHA256)

    monkeypatch.setattr("api.records.storage.pictures._write", write_and_end)
    pictures.put(SHA256, DATA)
    assert pictures.get(SHA256) == DATA
