"""What becomes of a finished run: its artifact, for each engine, and how the engines compare."""

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
from datasets.sample import Record, Sample, Split
from segdec.artifact import Manifest, Parent, read_manifest
from segdec.engines.tensorflow import NetworkEngine
from segdec.errors import ArtifactError, SegdecError
from segdec.export.model_export import NO_PHOTOGRAPHS, ModelCard, ValidationPhotographs, export_model
from segdec.predictor import Predictor
from training.data.run_data import list_split_records
from training.metrics.storage import METRICS_FILE
from training.metrics.validation import pick_evenly
from training.metrics.verification import Verifier, describe_variant
from training.run.folder import RunFolder

ReadRecord = Callable[[Record], Sample]

CALIBRATION = 64
"""Validation photographs that int8 is calibrated on; more change the ranges hardly."""

SAMPLE_CANDIDATES = 64
"""Defective photographs that are looked at for the self-test; more would only make the export slower."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What a user may choose about the artifact of a run.

    Attributes:
        name: Of the model; None for that of the run.
        version: Of the model.
        engines: What shall run it, see `segdec.engines.ENGINES`.
        with_sample: Whether a validation photograph travels in the artifact for its self-test; seeded
            noise does otherwise, or if the photographs cannot be read any more.
        force: Whether to export engines that decide worse than the network.
        measure: Whether to measure how long several engines take, so that the fastest exact one is preferred.
        overwrite: Whether to replace an artifact.
        parent: The version that the model was trained on from; None where it began anew.
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


def export_run(path: Path, out: Path, options: ExportOptions = DEFAULTS) -> Manifest:
    """Writes the artifact of a finished run, with the newest metrics measured on it.

    Args:
        path: Run folder.
        out: Folder of the artifact.
        options: What the user chose.

    Raises:
        SegdecError: If the run has not finished, the artifact cannot be written, or an engine decides worse.
    """
    folder = RunFolder.finished(path)
    result = folder.result()
    split, metrics = _metrics(folder, result.validation)
    name = options.name or folder.experiment().name
    network = folder.network()
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
        ),
        engines=options.engines,
        validation=_validation_photographs(folder, Predictor(NetworkEngine(network), result.model), options),
        measure=options.measure,
        overwrite=options.overwrite,
    )


def verify_artifact(path: Path, model: Path, split: Split) -> Iterator[str]:
    """Compares the engines of an artifact with the network of its run, on photographs of any split.

    Args:
        path: Run folder.
        model: The artifact that was exported from it.
        split: Whose photographs.

    Yields:
        A line for each engine.

    Raises:
        SegdecError: If the run has not finished, the artifact is another run's, or a photograph is missing.
    """
    folder, manifest = RunFolder.finished(path), read_manifest(model)
    result = folder.result()
    limits = {"calibration", "thresholds"}
    same_data = manifest.data_fingerprint == result.data_fingerprint
    if not same_data or manifest.model_dump(include=limits) != result.model.model_dump(include=limits):
        raise ArtifactError(
            f"{model} was not exported from {path}, or before its limits were chosen anew. Expected an "
            "artifact of this run; export it."
        )
    records = list_split_records(folder.experiment(), folder.splits, result.model.classes, split)
    reference = Predictor(NetworkEngine(folder.network()), result.model)
    verifier = Verifier(reference, records, _reader(reference), force=True)
    for name, variant in manifest.variants.items():
        found = verifier(name, Predictor.load(model, name))
        yield describe_variant(name, variant.model_copy(update={"verification": found}))


def _reader(predictor: Predictor) -> ReadRecord:
    # With the default limit on pixels: each start of a service reads one of them.
    return partial(read_photograph, white_level=predictor.config.input.white_level)


def _validation_photographs(
    folder: RunFolder, predictor: Predictor, options: ExportOptions
) -> ValidationPhotographs:
    """What the export uses of the validation photographs; nothing if they have been moved away meanwhile."""
    read = _reader(predictor)
    try:
        records = list_split_records(folder.experiment(), folder.splits, predictor.config.classes, "val")
        for record in records:
            read(record)
    except (SegdecError, OSError) as error:
        print(
            "note: The artifact's self-test gets noise instead of a validation photograph, and no engine is "
            f"compared with the network on photographs: {error}",
            file=sys.stderr,
        )
        return NO_PHOTOGRAPHS
    return ValidationPhotographs(
        sample=choose_sample(predictor, records, read) if options.with_sample else None,
        calibration=[read(record).image for record in pick_evenly(records, CALIBRATION)],
        verify=Verifier(predictor, records, read, force=options.force),
    )


def choose_sample(predictor: Predictor, records: Sequence[Record], read: ReadRecord) -> NDArray[np.uint8]:
    """Chooses the defective photograph that the model finds with the highest score, else the first of all.

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
    for record in [record for record in records if record.label > 0][:SAMPLE_CANDIDATES]:
        image = read(record).image
        answer = predictor.predict([image])[0]
        if answer.score >= answer.threshold and answer.score > highest:
            chosen, highest = image, answer.score
    return read(records[0]).image if chosen is None else chosen


def _metrics(folder: RunFolder, validation: dict[str, float | None]) -> tuple[str, dict[str, float]]:
    """Split and single figures of the last evaluation, or of validation if there was none."""
    path = folder.path / METRICS_FILE
    figures: dict[str, Any] = {"split": "val", **validation}
    if path.exists():
        figures = json.loads(path.read_text(encoding="utf-8"))
    split = figures.pop("split")
    return split, {name: float(value) for name, value in figures.items() if isinstance(value, int | float)}
