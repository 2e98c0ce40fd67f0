"""Files outside of the folder are found in every kind of photograph and mask."""

import pytest

from datasets.annotations.boxed_mask import BoxedMask
from datasets.annotations.combined_mask import CombinedMask
from datasets.annotations.drawn_mask import DrawnMask
from datasets.annotations.inverted_mask import InvertedMask
from datasets.file_bounds import without_files_outside
from datasets.sample import Dataset, Record


@pytest.fixture
def root(tmp_path):
    """A folder with a photograph, beside a file that is not part of it."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root/in.png").touch()
    (tmp_path / "out.png").touch()
    (tmp_path / "root/link.png").symlink_to(tmp_path / "out.png")
    return tmp_path / "root"


def kept(root, photograph, mask=None):
    record = Record("a", photograph, mask, 0, "a")
    checked = without_files_outside(Dataset(("good", "dent"), (record,)), root)
    assert [one.name for one in checked.problems] == [] if checked.records else ["a"]
    return bool(checked.records)


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
