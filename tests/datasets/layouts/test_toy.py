import numpy as np
import pytest

from datasets.layouts.toy import MATERIALS, make_sample, write_toy
from datasets.loading import load_dataset
from datasets.reading import read
from segdec.errors import DatasetError

SIZE = 64


def test_sample_is_a_function_of_index_and_seed():
    once, again = make_sample(3, seed=5, size=SIZE), make_sample(3, seed=5, size=SIZE)
    np.testing.assert_array_equal(once.image, again.image)
    for other in (make_sample(3, seed=6, size=SIZE), make_sample(5, seed=5, size=SIZE)):
        assert (other.image != once.image).mean() > 0.5


def test_labels_agree_with_masks_and_half_is_good():
    samples = [make_sample(index, size=SIZE, classes=4) for index in range(8)]
    assert [sample.label for sample in samples] == [0, 1, 0, 2, 0, 3, 0, 1]
    names = [sample.name for sample in samples[:4]]
    assert names == ["good/00000", "scratch/00001", "good/00002", "spot/00003"]
    for sample in samples:
        assert (sample.image.shape, sample.image.dtype) == ((SIZE, SIZE, 1), np.uint8)
        assert (sample.mask.shape, sample.mask.dtype) == ((SIZE, SIZE), np.uint8)
        assert set(np.unique(sample.mask)) == ({0, 255} if sample.label else {0})


@pytest.mark.parametrize("surface", MATERIALS)
def test_coloured_surfaces(surface):
    kinds = set()
    for index in range(12):
        sample = make_sample(index, size=32, surface=surface, classes=4)
        assert (sample.image.shape, sample.image.dtype) == ((32, 32, 3), np.uint8)
        assert sample.mask.any() == (sample.label > 0) == index % 2
        kinds.add(sample.name.partition("/")[0])
    assert kinds == {"good", *MATERIALS[surface].kinds}
    one, other = (make_sample(1, size=32, surface=surface, seed=seed).image for seed in (0, 1))
    assert (one != other).mean() > 0.5


@pytest.mark.parametrize("arguments", [{"classes": 3}, {"size": 16}, {"seed": -1}, {"surface": "stone"}])
def test_impossible_arguments_are_refused(arguments):
    with pytest.raises(DatasetError, match="Expected"):
        make_sample(0, **arguments)


@pytest.mark.parametrize("classes", [2, 4])
def test_written_set_is_read_back(tmp_path, classes):
    out = tmp_path / "toy"
    write_toy(out, 18, size=32, classes=classes, seed=3)
    dataset = load_dataset("toy", out)
    assert dataset.classes == (("good", "defect") if classes == 2 else ("good", "scratch", "spot", "stain"))
    for split in ("train", "val", "test"):
        assert {item.label for item in dataset.of_split(split)} == set(range(classes))
    item = next(item for item in dataset.items if item.name.endswith("00005"))
    made, found = make_sample(5, seed=3, size=32, classes=classes), read(item)
    assert (found.name, found.label) == (made.name, made.label)
    np.testing.assert_array_equal(found.image, made.image)
    np.testing.assert_array_equal(found.mask, made.mask)


def test_a_set_is_replaced_only_when_asked_and_as_a_whole(tmp_path):
    def interrupt(numbers):
        yield next(iter(numbers))
        raise KeyboardInterrupt

    out = tmp_path / "toy"
    with pytest.raises(KeyboardInterrupt):
        write_toy(out, 18, size=32, progress=interrupt)
    assert list(tmp_path.iterdir()) == []
    write_toy(out, 18, size=32)
    with pytest.raises(DatasetError, match="--overwrite"):
        write_toy(out, 18, size=32)
    with pytest.raises(KeyboardInterrupt):
        write_toy(out, 20, size=32, overwrite=True, progress=interrupt)
    assert list(tmp_path.iterdir()) == [out]
    assert len(load_dataset("toy", out).items) == 18
    write_toy(out, 20, size=32, overwrite=True)
    assert len(load_dataset("toy", out).items) == 20


def test_missing_set_says_how_to_make_one(tmp_path):
    with pytest.raises(DatasetError, match="python -m datasets toy"):
        load_dataset("toy", tmp_path / "toy")
