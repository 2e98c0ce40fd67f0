"""Files outside of the folder are found in every kind of photograph and mask."""

import pytest

from datasets.annotations.boxed_mask import BoxedMask
from datasets.annotations.combined_mask import CombinedMask
from datasets.annotations.drawn_mask import DrawnMask
from datasets.annotations.inverted_mask import InvertedMask
from datasets.file_bounds import FileOutsideError, path_inside, without_files_outside
from datasets.sample import Dataset, DataSetItem


@pytest.fixture
def root(tmp_path):
    """A folder with a photograph, beside a file that is not part of it."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/in.png").touch()
    (tmp_path / "out.png").touch()
    (tmp_path / "root/link.png").symlink_to(tmp_path / "out.png")
    return tmp_path / "root"


def kept(root, photograph, mask=None):
    item = DataSetItem("a", photograph, mask, 0, "a")
    checked = without_files_outside(Dataset(("good", "dent"), (item,)), root)
    assert [one.name for one in checked.problems] == [] if checked.items else ["a"]
    return bool(checked.items)


def test_photographs(root):
    assert kept(root, root / "in.png") and kept(root, root / "x/../in.png")
    assert not kept(root, root / "../out.png") and not kept(root, root.parent / "out.png")
    assert not kept(root, root / "link.png")
    assert not kept(root, root.parent / "root2/in.png")


def test_the_root_may_be_the_manifest(root):
    assert kept(root / "in.png", root / "in.png") and not kept(root / "in.png", root.parent / "out.png")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda path: path,
        InvertedMask,
        BoxedMask,
        lambda path: BoxedMask(InvertedMask(path)),
        lambda path: CombinedMask((DrawnMask("drawn", 1, 1, ()), path)),
    ],
)
def test_masks(root, wrap):
    assert kept(root, root / "in.png", wrap(root / "in.png"))
    assert not kept(root, root / "in.png", wrap(root.parent / "out.png"))


# === Before a file is read ===


def test_a_path_inside_has_no_parent_folders(root):
    for path in ("in.png", "x/../in.png", f"../x/../{root.name}/in.png", "missing.png"):
        assert path_inside(root / path, root) == root / path.rpartition("/")[2]


def test_the_folder_may_have_another_name(root):
    other = root.parent / "other"
    other.symlink_to(root)
    assert path_inside(other / "in.png", other) == other / "in.png"
    assert path_inside(root / "in.png", other) == root / "in.png"


@pytest.mark.parametrize(
    "path", ["../out.png", "../missing.png", "link.png", "dangling.png", "../root2/in.png"]
)
def test_the_error_is_the_same_whether_a_file_is_there_or_not(root, path):
    (root / "dangling.png").symlink_to(root.parent / "missing.png")
    with pytest.raises(FileOutsideError, match="lies outside of the folder of the data set"):
        path_inside(root / path, root)


def test_a_link_outside_that_leads_into_the_folder_is_outside(root):
    (root.parent / "way").symlink_to(root)
    with pytest.raises(FileOutsideError):
        path_inside(root.parent / "way/in.png", root)
