"""What the network is trained on, to be looked at: the first images of a step's batch."""

import numpy as np

from segdec.predictor import Predictor
from training.data.input_pipeline import InputPipeline
from training.data.synthetic_source import ANY_DEFECT
from training.run.panel import draw_example, join_pictures
from training.run.tracker import Pictures

IMAGES = 4
"""Of a batch, at most."""


def draw_batch(predictor: Predictor, pipeline: InputPipeline, stage_index: int, step: int) -> Pictures:
    """Draws the first images of a step's batch as they went into the network, on one sheet, `batch`.

    Each stands beside its target, the weights of the mask's pixels where they differ, and the mask that the
    averaged weights predict.

    Raises:
        SegdecError: If an image cannot be read any more.
    """
    names, batch = pipeline.global_batch(stage_index, step, IMAGES)
    images = np.rint(batch["image"]).astype(np.uint8)
    predictions = _whole(predictor).predict(list(images), batch_size=IMAGES)
    classes, targets = predictor.config.classes, batch["target"].max(axis=-1)
    pictures = [
        draw_example(name, image, target, weight[..., 0], prediction, _class_name(classes, label))
        for name, image, target, weight, label, prediction in zip(
            names,
            images,
            targets,
            batch["weight"],
            batch["label"],
            predictions,
            strict=True,
        )
    ]
    return {"batch": join_pictures(pictures)}


def _whole(predictor: Predictor) -> Predictor:
    """The same, inspecting all of an image: what is not inspected has been filled, and moved along."""
    nothing = {"regions_of_interest": (), "ignored_areas": (), "interest_mask": None}
    geometry = predictor.config.input.model_copy(update=nothing)
    return Predictor(predictor.engine, predictor.config.model_copy(update={"input": geometry}))


def _class_name(classes: tuple[str, ...], label: int) -> str:
    return "some defect" if label == ANY_DEFECT else classes[label]
