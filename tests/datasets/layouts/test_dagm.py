import pytest

from datasets.layouts.dagm import index
from segdec.errors import DatasetError
from tests.datasets.layouts.contents import check_problems

DEFECTS = {"0003", "0007", "0009", "0010", "0012"}


@pytest.fixture
def write_class(write_picture):
    """Writes a class of twelve photographs to train and four to test; five and one have a defect."""

    def write(folder, number=1):
        for name, stems in (("Train", range(1, 13)), ("Test", range(1, 5))):
            lines = [str(number)]
            for stem in (f"{number:04d}" for number in stems):
                write_picture(folder / name / f"{stem}.PNG")
                mask = f"{stem}_label.PNG" if stem in DEFECTS else "0"
                lines.append(f"{int(stem)}\t{int(mask != '0')}\t{stem}.PNG\t0\t{mask}")
                if mask != "0":
                    write_picture(folder / name / "Label" / mask, mask=True)
            (folder / name / "Label/Labels.txt").write_bytes("\r\n".join([*lines, ""]).encode())
        return folder

    return write


def test_one_class_is_labelled_by_mask_files(tmp_path, write_class):
    dataset = index(write_class(tmp_path / "Class1"))
    assert dataset.classes == ("good", "defect")
    assert dataset.problems == ()
    defects = ["Test/0003", *(f"Train/{stem}" for stem in sorted(DEFECTS))]
    assert [item.name for item in dataset.items if item.label] == defects
    by_name = {item.name: item for item in dataset.items}
    assert by_name["Train/0007"].mask_file == tmp_path / "Class1/Train/Label/0007_label.PNG"
    assert (by_name["Train/0001"].mask_file, by_name["Train/0001"].group) == (None, "Train/0001")
    assert {item.supervision for item in dataset.items} == {"mask"}


def test_split_is_published_with_a_fifth_of_each_class_to_validate(tmp_path, write_class):
    dataset = index(write_class(tmp_path))
    assert [r.name for r in dataset.of_split("test")] == ["Test/0001", "Test/0002", "Test/0003", "Test/0004"]
    assert sorted(item.label for item in dataset.of_split("val")) == [0, 1]
    assert len(dataset.of_split("train")) == 10


def test_several_classes_are_one_set(tmp_path, write_class):
    for number in (1, 10):
        write_class(tmp_path / f"Class{number}", number)
    dataset = index(tmp_path)
    assert {item.name.split("/")[0] for item in dataset.items} == {"Class1", "Class10"}
    assert len({item.name for item in dataset.items}) == 32
    assert dataset.problems == ()


def test_every_problem_is_reported_at_once(tmp_path, write_class, write_picture):
    train, labels = tmp_path / "Class1/Train", tmp_path / "Class1/Train/Label"
    write_class(tmp_path / "Class1")
    (labels / "0003_label.PNG").unlink()
    write_picture(labels / "0004_label.PNG", mask=True)
    (train / "0005.PNG").unlink()
    (train / "0007.PNG").unlink()
    write_picture(train / "0099.PNG")
    lines = (labels / "Labels.txt").read_text().splitlines()
    lines += ["0098\tyes\t0098.PNG\t0\t0", "1"]
    (labels / "Labels.txt").write_text("\n".join(lines))
    (tmp_path / "Class1/Test/Label/Labels.txt").unlink()
    (tmp_path / "Class2/Train").mkdir(parents=True)
    dataset = index(tmp_path)
    expected = [
        ("Test/Label/Labels.txt", "", "does not exist"),
        ("Train/0003.PNG", "Class1/Train/0003", "labels it defective, but its mask is missing"),
        ("Train/0004.PNG", "Class1/Train/0004", "labels it good, but its mask exists"),
        ("Train/0099.PNG", "Class1/Train/0099", "does not list"),
        ("Train/Label/0007_label.PNG", "Class1/Train/0007", "no photograph"),
        ("Train/Label/Labels.txt", "Class1/Train/0005", "0005.PNG is missing"),
        ("Train/Label/Labels.txt, line 14", "", "Invalid line '0098"),
        ("Train/Label/Labels.txt, line 15", "", "Invalid line '1'"),
        ("Class2", "", "Test is missing"),
        ("Class2/Train", "", "Label is missing"),
    ]
    check_problems(dataset, expected)
    names = [item.name for item in dataset.items]
    assert names[:4] == [f"Class1/Test/{number:04d}" for number in range(1, 5)]
    assert names[4:] == [f"Class1/Train/{number:04d}" for number in (1, 2, 6, 8, 9, 10, 11, 12)]


def test_root_of_another_layout_is_refused(tmp_path):
    (tmp_path / "good").mkdir()
    with pytest.raises(DatasetError, match=r"no DAGM photographs. Expected .*Class1/Train/0001\.PNG"):
        index(tmp_path)
