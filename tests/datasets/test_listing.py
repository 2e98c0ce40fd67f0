from pathlib import Path

import pytest

from datasets.listing import files, subfolders
from segdec.errors import DatasetError


@pytest.fixture
def root(tmp_path):
    (tmp_path / "good").mkdir()
    for name in ("b.png", "a.png", ".hidden", "Thumbs.db"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "gone.png").symlink_to(tmp_path / "moved.png")
    return tmp_path


def test_visible_entries_are_sorted_by_kind(root):
    assert files(root) == [root / "a.png", root / "b.png"]
    assert subfolders(root) == [root / "good"]


@pytest.mark.parametrize("list_entries", [files, subfolders])
def test_folder_that_is_readable_but_not_searchable_is_an_error(root, list_entries, monkeypatch):
    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)  # permissions do not bind every user who runs the tests
    with pytest.raises(DatasetError, match=r"a\.png cannot be examined \(Permission denied\).*searchable"):
        list_entries(root)


@pytest.mark.parametrize(("name", "words"), [("none", "does not exist"), ("a.png", "is a file")])
def test_what_is_no_folder_is_an_error(root, name, words):
    with pytest.raises(DatasetError, match=words):
        files(root / name)
