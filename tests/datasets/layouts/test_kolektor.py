import pytest

from datasets.layouts.kolektor import index
from segdec.errors import DatasetError
from tests.datasets.layouts.contents import check_problems


def test_items_are_named_grouped_and_labelled(kolektor_root):
    dataset = index(kolektor_root)
    assert dataset.classes == ("good", "defect")
    assert dataset.problems == ()
    assert [(r.name, r.group, r.label, r.split) for r in dataset.items] == [
        ("kos01/Part0", "kos01", 0, None),
        ("kos01/Part1", "kos01", 1, None),
        ("kos21/Part0", "kos21", 0, None),
        ("kos21/Part1", "kos21", 0, None),
    ]
    assert {item.mask_file.name for item in dataset.items} == {"Part0_label.bmp", "Part1_label.bmp"}


def test_unexpected_part_is_skipped_with_and_without_mask(kolektor_root, write_picture):
    write_picture(kolektor_root / "kos21/Part7.jpg")
    write_picture(kolektor_root / "kos01/Part7.jpg")
    write_picture(kolektor_root / "kos01/Part7_label.bmp", mask=True)
    dataset = index(kolektor_root)
    names = [item.name for item in dataset.items]
    assert "kos21/Part7" not in names
    assert "kos01/Part7" in names
    assert dataset.problems == ()


def test_every_problem_is_reported_at_once(kolektor_root):
    (kolektor_root / "kos01/Part0_label.bmp").write_bytes(b"")
    (kolektor_root / "kos01/Part1.jpg").unlink()
    (kolektor_root / "kos21/Part0_label.bmp").unlink()
    dataset = index(kolektor_root)
    assert [item.name for item in dataset.items] == ["kos21/Part1"]
    expected = [
        ("kos01/Part0_label.bmp", "kos01/Part0", "is empty"),
        (
            "kos01/Part1_label.bmp",
            "kos01/Part1",
            f"no photograph. Expected {kolektor_root / 'kos01/Part1.jpg'}",
        ),
        ("kos21/Part0.jpg", "kos21/Part0", f"no mask. Expected {kolektor_root / 'kos21/Part0_label.bmp'}"),
    ]
    check_problems(dataset, expected)


def test_empty_root_says_what_was_expected(tmp_path):
    with pytest.raises(DatasetError, match=r"Expected .*kos01"):
        index(tmp_path)
