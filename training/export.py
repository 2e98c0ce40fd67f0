"""The commands `export` and `verify`: the artifact of a finished run, and comparisons of its engines."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datasets.reading import read as read_photograph
from datasets.sample import DataSetItem, Sample, Split
from segdec.artifact import Manifest, OperatingPoints, Parent, read_manifest
from segdec.engines.tensorflow import NetworkEngine
from segdec.errors import ArtifactError, SegdecError
from segdec.export.model_export import NO_PHOTOGRAPHS, ModelCard, ValidationPhotographs, export_model
from segdec.network.network import SegDecNet
from segdec.predictor import Predictor
from training.data.subsets import pick_evenly
from training.metrics.operating_points import find_outcome_curve
from training.metrics.storage import METRICS_FILE, read_rating
from training.metrics.verification import Verifier, describe_variant
from training.reporting.exported_report import read_report
from training.run.folder import RunFolder
from training.run.records import RunResult
from training.run_limits import find_limits

ReadItem = Callable[[DataSetItem], Sample]

CALIBRATION_IMAGES = 64
"""Validation images for the calibration of int8; more hardly change the ranges."""

MAX_COMPARED = 100
"""Validation images on which engines are compared with the network."""

SAMPLE_CANDIDATES = 64
"""Defective images that are considered for the self-test."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of an artifact; see `python -m training export --help`.

    Attributes:
        with_sample: Whether the artifact may contain images: a validation image for the self-test, instead of
            seeded noise, and the report. Noise is also used if the images can no longer be read.
        measure: Whether to measure the speed of several engines and prefer the fastest exact one.
        parent: The version that the training continued from; None for a new model.
    """

    name: str | None = None
    version: str = "1"
    engines: Sequence[str] = ("tensorflow",)
    with_sample: bool = True
    force: bool = False
    measure: bool = True
    overwrite: bool = False
    parent: Parent | None = None


DEFAULTS = ExportOptions()


def export_run(
    path: Path, out: Path, options: ExportOptions = DEFAULTS, network: SegDecNet | None = None
) -> Manifest:
    """Writes the artifact of a finished run, with the metrics of its last evaluation, to the folder `out`.

    `network` is the trained network if it is in memory; None to load it. Raises a `SegdecError` if the run
    has not finished, the artifact cannot be written, or an engine is worse.
    """
    folder = RunFolder.finished(path)
    result = folder.result()
    split, metrics = _metrics(folder, result.validation)
    name = options.name or folder.experiment().name
    network = network or folder.network()
    return export_model(
        network,
        out,
        result.model,
        ModelCard(
            name,
            options.version,
            metrics,
            split,
            result.data_fingerprint,
            result.encoder,
            options.parent,
            find_limits(folder),
            _operating_points(result),
            read_rating(path),
            result.warnings,
        ),
        engines=options.engines,
        validation=_validation_photographs(folder, Predictor(NetworkEngine(network), result.model), options),
        report=read_report(path) if options.with_sample else None,
        measure=options.measure,
        overwrite=options.overwrite,
    )


def _operating_points(result: RunResult) -> OperatingPoints | None:
    if not result.operating_points:
        return None
    points, curve = result.operating_points, None
    if result.scored is not None:
        used = {result.model.thresholds.score, result.model.thresholds.lowest}
        thresholds = used.union(point.threshold for point in points)
        curve = find_outcome_curve(result.scored.unpack(), result.model.calibration, thresholds)
    return OperatingPoints(measured_on=result.chosen_by, points=points, curve=curve)


def verify_artifact(path: Path, model: Path, split: Split) -> Iterator[str]:
    """Compares the engines of the artifact `model` with the network of its run, on images of a split.

    Yields:
        A line for each engine.

    Raises:
        SegdecError: If the run has not finished, the artifact belongs to another run, or an image is missing.
    """
    folder, manifest = RunFolder.finished(path), read_manifest(model)
    result = folder.result()
    limits = {"calibration", "thresholds"}
    same_data = manifest.data_fingerprint == result.data_fingerprint
    if not same_data or manifest.model_dump(include=limits) != result.model.model_dump(include=limits):
        raise ArtifactError(
            f"{model} was not exported from {path}, or the thresholds have changed since. Expected an "
            "artifact of this run; export it again."
        )
    reference = folder.predictor()
    verifier = Verifier(reference, folder.items(split), _reader(reference), force=True)
    for name, variant in manifest.variants.items():
        verification = verifier(name, Predictor.load(model, name))
        yield describe_variant(name, variant.model_copy(update={"verification": verification}))


def _reader(predictor: Predictor) -> ReadItem:
    # With the default pixel limit: a service reads the self-test image with it.
    return partial(read_photograph, white_level=predictor.config.input.white_level)


def _validation_photographs(
    folder: RunFolder, predictor: Predictor, options: ExportOptions
) -> ValidationPhotographs:
    """Validation images for the export; none if they can no longer be read."""
    read = _reader(predictor)
    try:
        split = folder.experiment().validation_split
        items = pick_evenly(folder.items(split), MAX_COMPARED)
        for item in items:
            read(item)
    except (SegdecError, OSError) as error:
        print(
            "note: The self-test of the artifact uses noise instead of a validation photograph, and engines "
            f"are not compared with the network on photographs: {error}",
            file=sys.stderr,
        )
        return NO_PHOTOGRAPHS
    return ValidationPhotographs(
        sample=choose_sample(predictor, items, read) if options.with_sample else None,
        calibration=[read(item).image for item in pick_evenly(items, CALIBRATION_IMAGES)],
        verify=Verifier(predictor, items, read, force=options.force),
    )


def choose_sample(predictor: Predictor, items: Sequence[DataSetItem], read: ReadItem) -> NDArray[np.uint8]:
    """Returns the detected defective image of highest score, otherwise the first image, uint8 [H, W, C].

    A high score tests both parts of the network: it is far from the threshold, and its mask is not empty.
    Only the first `SAMPLE_CANDIDATES` defective images are considered. Raises a `SegdecError` if an image
    cannot be read or does not fit the model.
    """
    chosen, highest = None, -1.0
    for item in [item for item in items if item.label > 0][:SAMPLE_CANDIDATES]:
        image = read(item).image
        answer = predictor.predict([image])[0]
        if answer.score >= answer.threshold and answer.score > highest:
            chosen, highest = image, answer.score
    return read(items[0]).image if chosen is None else chosen


def _metrics(folder: RunFolder, validation: dict[str, float | None]) -> tuple[str, dict[str, float]]:
    """Split and scalar metrics of the last evaluation, or of validation without one."""
    path = folder.path / METRICS_FILE
    metrics: dict[str, Any] = {"split": folder.experiment().validation_split, **validation}
    if path.exists():
        metrics = json.loads(path.read_text(encoding="utf-8"))
    split = metrics.pop("split")
    return split, {name: float(value) for name, value in metrics.items() if isinstance(value, int | float)}
