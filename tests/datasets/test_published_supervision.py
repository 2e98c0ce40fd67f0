import pickle
from pathlib import Path

import pytest

from datasets.published_supervision import Conversion, convert, read_published
from datasets.sample import Dataset, Problem, Record
from datasets.splitting import apply_splits
from segdec.errors import DatasetError


def make_dataset(*names, defective=(), split=None, problems=()):
    def record(name):
        place = split or {"train": "train", "test": "test"}.get(name.split("/")[0].lower())
        return Record(name, Path("image"), None, label=int(name in defective), group=name, split=place)

    records = tuple(record(name) for name in sorted(names))
    return Dataset(("good", "defect"), records, tuple(Problem("file", "broken", name) for name in problems))


@pytest.fixture
def write(tmp_path):
    def write_lists(*lists):
        path = tmp_path / "split_1.pyb"
        path.write_bytes(pickle.dumps(lists))
        return path

    return write_lists


@pytest.fixture
def kolektor2():
    names = [*(f"train/{10000 + number}" for number in range(10)), "test/20000", "test/20001"]
    return make_dataset(*names, defective=("train/10003", "train/10007", "train/10008", "test/20001"))


def test_kolektor2_becomes_a_line_for_each_defective_training_photograph(write, kolektor2, tmp_path):
    train = [(10000 + number, number == 3) for number in range(8)]
    train += [("10008", False), ("10009", True)]
    path, out = write(train, [(20000, True), (20001, False)]), tmp_path / "supervision.txt"
    result = convert(path, out, kolektor2)
    assert result == Conversion(masks=("train/10003",), labels=("train/10007", "train/10008"), unlisted=())
    assert out.read_text().splitlines() == [
        "# split_1.pyb: 1 masks, 2 labels alone",
        "mask   train/10003",
        "label  train/10007",
        "label  train/10008",
    ]


def test_split_file_holds_what_is_listed(write, kolektor2, tmp_path):
    path = write([(10000 + number, False) for number in range(8)], [(20000, True)])
    result = convert(path, tmp_path / "supervision.txt", kolektor2, splits=tmp_path / "splits.txt")
    assert result.unlisted == ("train/10008",)
    dataset = apply_splits(kolektor2, tmp_path / "splits.txt")
    assert [record.name for record in dataset.of_split("test")] == ["test/20000"]
    assert len(dataset.of_split("val")) == 1  # a fifth of six good ones, of two defective none
    assert [record.name for record in dataset.records if record.split is None] == [
        "test/20001",
        "train/10008",
        "train/10009",
    ]


def test_severstal_has_a_list_to_validate_and_suffixes(write, tmp_path):
    names = [f"train_images/{letter}01.2" for letter in "abc"]
    dataset = make_dataset(*names, defective=names, split="train")
    path = write([("a01.2.jpg", False)], [("b01.2.jpg", False)], [("c01.2.jpg", True)])
    out, splits = tmp_path / "supervision.txt", tmp_path / "splits.txt"
    assert convert(path, out, dataset, splits=splits) == Conversion((names[2],), (names[0],), ())
    assert [record.split for record in apply_splits(dataset, splits).records] == ["train", "test", "val"]


@pytest.mark.parametrize(("part", "labels"), [(0, ("kos01/Part5",)), (1, ("kos02/Part5",))])
def test_kolektor_folds_are_parts(write, tmp_path, part, labels):
    dataset = make_dataset("kos01/Part5", "kos02/Part5", defective=("kos01/Part5", "kos02/Part5"))
    first, second = [("kos01/Part5", False)], [("kos02/Part5", False)]
    path = write([first, second], [second, first])
    assert convert(path, tmp_path / "out.txt", dataset, part=part).labels == labels


def test_dagm_number_is_that_of_the_same_side(write, tmp_path):
    dataset = make_dataset("Test/0007", "Train/0007", defective=("Test/0007", "Train/0007"))
    path = write([[("0007", False)], []], [[(7, True)], []])
    assert convert(path, tmp_path / "out.txt", dataset, part=0).labels == ("Train/0007",)


def test_photograph_with_a_problem_is_passed_over(write, tmp_path):
    dataset = make_dataset("train/10000", defective=("train/10000",), problems=("train/10001", ""))
    path = write([(10000, True), (10001, False)], [])
    assert convert(path, tmp_path / "out.txt", dataset).labels == ()


@pytest.mark.parametrize(
    ("lists", "part", "message"),
    [
        (([(10000, False), (77777, False)], []), None, r"to train, 1 belong to no .* such as '77777'"),
        (([(10000, False)], [("x", True)]), None, "to test, 1 belong"),
        (([(10000, False)], [(10003, False)]), 0, "holds one split. Give no number"),
        (([[(10000, False)]], [[]]), None, "holds 1 folds or classes. Give the number of one, 0 to 0"),
        (([[(10000, False)]], [[]]), 1, "holds no part 1"),
        (([[(10000, False), 10001]], [[]]), 0, "holds one split"),
        (([(10000, False)],), None, "two or three lists"),
        (([(10000, False)], 5), None, "Expected lists"),
        (([(10000, 1)], []), None, "True or False"),
        (([(-1, True)], []), None, "Expected pairs"),
        (([10**5000], []), None, "Expected pairs"),
        (([(10000, False)], []), None, "names no defective photograph"),
    ],
)
def test_file_that_does_not_fit_is_refused_and_nothing_written(
    write, kolektor2, tmp_path, lists, part, message
):
    out = tmp_path / "out.txt"
    with pytest.raises(DatasetError, match=message):
        convert(write(*lists), out, kolektor2, part=part)
    assert not out.exists()


def test_place_that_cannot_be_written_is_named(write, kolektor2, tmp_path):
    with pytest.raises(DatasetError, match="cannot be written"):
        convert(write([(10003, False)], []), tmp_path / "nowhere/out.txt", kolektor2)


def test_published_names_lose_their_suffix(write):
    assert read_published(write([("a.b.JPG", True)], [(7, False)])) == {
        "train": [("a.b", True)],
        "test": [("7", False)],
    }
