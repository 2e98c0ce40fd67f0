from pathlib import Path

import pytest

from datasets.listing import files, subfolders
from segdec.errors import DatasetError, ImageError
from segdec.images import read_file


@pytest.fixture
def root(tmp_path):
    (tmp_path / "good").mkdir()
    for name in ("b.png", "a.png", ".hidden", "Thumbs.db"):
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def test_visible_entries_are_sorted_by_kind(root):
    assert files(root) == [root / "a.png", root / "b.png"]
    assert subfolders(root) == [root / "good"]


def test_links_that_lead_nowhere_or_in_a_circle_are_files_whose_reading_names_them(root):
    (root / "gone.png").symlink_to(root / "moved.png")
    (root / "loop.png").symlink_to(root / "loop.png")
    (root / "up").symlink_to(root)
    assert [path.name for path in files(root)] == ["a.png", "b.png", "gone.png", "loop.png"]
    assert [path.name for path in subfolders(root)] == ["good", "up"]
    for name in ("gone.png", "loop.png"):
        with pytest.raises(ImageError, match=rf"{name} cannot be read"):
            read_file(root / name)


@pytest.mark.parametrize("list_entries", [files, subfolders])
def test_folder_that_is_readable_but_not_searchable_is_an_error(root, list_entries, monkeypatch):
    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)  # permissions do not bind every user who runs the tests
    with pytest.raises(DatasetError, match=r"a\.png cannot be read \(Permission denied\).*search"):
        list_entries(root)


@pytest.mark.parametrize(("name", "words"), [("none", "does not exist"), ("a.png", "is a file")])
def test_what_is_no_folder_is_an_error(root, name, words):
    with pytest.raises(DatasetError, match=words):
        files(root / name)
