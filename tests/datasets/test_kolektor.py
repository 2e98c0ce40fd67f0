import pytest

from datasets.kolektor import index
from segdec.errors import DatasetError, ImageError


def test_records_are_named_grouped_and_labelled(kolektor_root):
    dataset = index(kolektor_root)
    assert dataset.classes == ("good", "defect")
    assert [(r.name, r.group, r.label, r.split) for r in dataset.records] == [
        ("kos01/Part0", "kos01", 0, None),
        ("kos01/Part1", "kos01", 1, None),
        ("kos21/Part0", "kos21", 0, None),
        ("kos21/Part1", "kos21", 0, None),
    ]


def test_stray_part_is_skipped_with_and_without_mask(kolektor_root, write_picture):
    write_picture(kolektor_root / "kos21/Part7.jpg")
    write_picture(kolektor_root / "kos01/Part7.jpg")
    write_picture(kolektor_root / "kos01/Part7_label.bmp", mask=True)
    names = [record.name for record in index(kolektor_root).records]
    assert "kos21/Part7" not in names
    assert "kos01/Part7" in names


@pytest.mark.parametrize("gone", ["Part1.jpg", "Part1_label.bmp"])
def test_half_a_pair_names_both_paths(kolektor_root, gone):
    (kolektor_root / "kos01" / gone).unlink()
    with pytest.raises(DatasetError) as error:
        index(kolektor_root)
    assert str(kolektor_root / "kos01/Part1.jpg") in str(error.value)
    assert str(kolektor_root / "kos01/Part1_label.bmp") in str(error.value)


def test_empty_root_says_what_was_expected(tmp_path):
    with pytest.raises(DatasetError, match=r"Expected .*kos01"):
        index(tmp_path)


def test_missing_root_is_named(tmp_path):
    with pytest.raises(DatasetError, match="nowhere does not exist"):
        index(tmp_path / "nowhere")


def test_root_that_is_a_file_is_refused(tmp_path):
    path = tmp_path / "set.zip"
    path.touch()
    with pytest.raises(DatasetError, match=r"set\.zip is a file, expected a folder"):
        index(path)


def test_folder_that_cannot_be_listed_is_named(kolektor_root, monkeypatch):
    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.iterdir", refuse)  # root may read anything, so chmod proves nothing
    with pytest.raises(DatasetError, match=r"kolektor cannot be listed \(Permission denied\)"):
        index(kolektor_root)


def test_damaged_mask_is_named(kolektor_root):
    (kolektor_root / "kos01/Part0_label.bmp").write_bytes(b"")
    with pytest.raises(ImageError, match=r"Part0_label\.bmp"):
        index(kolektor_root)
