"""The photograph that travels in the artifact for its self-test."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from datasets.sample import Record, Sample
from segdec.predictor import Predictor

CANDIDATES = 64
"""Defective photographs that are looked at; more would only make the export slower."""


def choose_sample(
    predictor: Predictor, records: Sequence[Record], read: Callable[[Record], Sample]
) -> NDArray[np.uint8]:
    """The defective photograph that the model finds with the highest score, else the first of all.

    A plain defect has a score far from the threshold and a mask that is not empty: both parts of the
    network must work to answer it.

    Args:
        predictor: The model.
        records: Photographs to choose from, at least one; of the defective ones the first 64.
        read: Loads one record.

    Returns:
        uint8 [H, W, C].

    Raises:
        SegdecError: If a photograph cannot be read or does not fit the model.
    """
    chosen, highest = None, -1.0
    for record in [record for record in records if record.label > 0][:CANDIDATES]:
        image = read(record).image
        answer = predictor.predict([image])[0]
        if answer.score >= answer.threshold and answer.score > highest:
            chosen, highest = image, answer.score
    return read(records[0]).image if chosen is None else chosen
