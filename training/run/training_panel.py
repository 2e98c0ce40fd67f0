"""Pictures of a running training: validation images with predictions, and training images with targets."""

from collections.abc import Sequence

import numpy as np

from datasets.sample import DataSetItem, labels_of
from segdec.predictor import Predictor
from training.data.input_pipeline import InputPipeline
from training.data.subsets import pick_evenly
from training.data.synthetic_source import ANY_DEFECT
from training.data.synthetic_validation import ValidationImages
from training.run.panel import draw_example, draw_picture, join_pictures
from training.run.tracker import Pictures

MAX_DEFECTIVE, MAX_GOOD, MAX_TRAINING = 4, 2, 4
"""Images of a validation panel and of a training panel."""


def draw_validation(predictor: Predictor, images: ValidationImages) -> Pictures:
    """Returns image, true mask and prediction of a few validation images by name; always the same images."""
    samples = [images.read(item) for item in choose_panel_items(images.items)]
    predictions = predictor.predict([sample.image for sample in samples], batch_size=MAX_TRAINING)
    classes = predictor.config.classes
    return {
        sample.name: draw_picture(sample, prediction, classes[sample.label])
        for sample, prediction in zip(samples, predictions, strict=True)
    }


def choose_panel_items(items: Sequence[DataSetItem]) -> list[DataSetItem]:
    """Returns some defective and some good items, each kind picked evenly."""
    labels = labels_of(items)
    defective, good = (np.flatnonzero(kind).tolist() for kind in (labels != 0, labels == 0))
    return [items[place] for place in pick_evenly(defective, MAX_DEFECTIVE) + pick_evenly(good, MAX_GOOD)]


def draw_batch(predictor: Predictor, pipeline: InputPipeline, stage_index: int, step: int) -> Pictures:
    """Draws the first images of a step's batch as the network received them, on one sheet named `batch`."""
    names, batch = pipeline.global_batch(stage_index, step, MAX_TRAINING)
    images = np.rint(batch["image"]).astype(np.uint8)
    predictions = _inspecting_everything(predictor).predict(list(images), batch_size=MAX_TRAINING)
    classes, targets = predictor.config.classes, batch["target"].max(axis=-1)
    labels = ["some defect" if label == ANY_DEFECT else classes[label] for label in batch["label"]]
    rows = zip(names, images, targets, batch["weight"][..., 0], predictions, labels, strict=True)
    return {"batch": join_pictures([draw_example(*row) for row in rows])}


def _inspecting_everything(predictor: Predictor) -> Predictor:
    """The predictor without limits on the inspected area: a batch has them applied already."""
    nothing = {"regions_of_interest": (), "ignored_areas": (), "interest_mask": None}
    geometry = predictor.config.input.model_copy(update=nothing)
    return Predictor(predictor.engine, predictor.config.model_copy(update={"input": geometry}))
