"""One folder with photographs that are annotated in every way."""

import numpy as np

from datasets.checking import check_dataset
from datasets.detection import detect_layout
from datasets.loading import load_dataset
from datasets.reading import read
from tests.datasets.mixed_folder import SCRATCH, write_mixed_folder


def test_every_photograph_has_its_class_and_its_mask(tmp_path):
    samples = write_mixed_folder(tmp_path, 2)
    dataset = load_dataset(detect_layout(tmp_path), tmp_path)
    assert check_dataset(dataset).dataset.problems == ()
    assert dataset.classes == ("good", SCRATCH, "NIO")
    assert {item.name for item in dataset.items} == samples.keys()
    for item in dataset.items:
        truth = samples[item.name]
        assert (item.label > 0) == (truth.label > 0), item.name
        way = item.name.split("/")[1].split("_")[0]
        assert item.supervision == {"voc": "box", "class": "label"}.get(way if item.label else "", "mask")
        if item.label and item.supervision == "mask":
            mask = read(item).mask > 0
            overlap = np.count_nonzero(mask & (truth.mask > 0)) / np.count_nonzero(mask | (truth.mask > 0))
            assert overlap > 0.7, item.name
    assert len(dataset.dropped) == 2  # the accidental clicks
