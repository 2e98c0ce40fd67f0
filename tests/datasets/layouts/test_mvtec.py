import pytest

from datasets.layouts.folder import index
from segdec.errors import DatasetError
from tests.datasets.layouts.contents import check_problems


@pytest.fixture
def root(tmp_path, write_picture):
    """Five good photographs to train, one to test; one contamination, two large breaks."""
    names = [f"train/good/{number:03d}" for number in range(5)]
    defects = ["contamination/000", "broken_large/000", "broken_large/001"]
    for name in (*names, "test/good/000", *(f"test/{name}" for name in defects)):
        write_picture(tmp_path / f"bottle/{name}.png")
    for name in defects:
        write_picture(tmp_path / f"bottle/ground_truth/{name}_mask.png", mask=True)
    return tmp_path / "bottle"


def test_classes_are_good_and_the_sorted_defects(root):
    dataset = index(root)
    assert dataset.classes == ("good", "broken_large", "contamination")
    assert dataset.problems == ()
    assert [(r.name, r.label) for r in dataset.items] == [
        ("test/broken_large/000", 1),
        ("test/broken_large/001", 1),
        ("test/contamination/000", 2),
        ("test/good/000", 0),
        *((f"train/good/{number:03d}", 0) for number in range(5)),
    ]
    masks = {item.name: item.mask_file for item in dataset.items}
    assert masks["test/broken_large/001"] == root / "ground_truth/broken_large/001_mask.png"
    assert masks["test/good/000"] is None


def test_every_problem_is_reported_at_once(root, write_picture):
    (root / "ground_truth/contamination/000_mask.png").unlink()
    (root / "test/broken_large/000.png").unlink()
    write_picture(root / "ground_truth/scratch/007_mask.png", mask=True)
    write_picture(root / "train/scratch/000.png")
    dataset = index(root)
    assert dataset.classes == ("good", "broken_large", "contamination", "scratch")
    expected = [
        ("broken_large/000_mask.png", "", "has no photograph. Expected one named '000'"),
        ("scratch/007_mask.png", "", "has no photograph. Expected one named '007'"),
        ("test/contamination/000.png", "test/contamination/000", "is defective but has no mask"),
        ("train/scratch/000.png", "train/scratch/000", "is defective but has no mask"),
    ]
    check_problems(dataset, expected)
    assert len(dataset.items) == 7


def test_several_categories_are_named(root, write_picture):
    write_picture(root.parent / "cable/train/good/000.png")
    (root.parent / "cable/test").mkdir()
    with pytest.raises(DatasetError, match=r"bottle, cable\..* for example .*bottle"):
        index(root.parent)


def test_category_without_photographs_is_refused(tmp_path):
    for name in ("train/good", "test/good"):
        (tmp_path / name).mkdir(parents=True)
    with pytest.raises(DatasetError, match="holds no photograph"):
        index(tmp_path)
