"""Sets the score threshold of an exported model, without its run."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from segdec.artifact import Manifest, OperatingPoint, OperatingPoints, open_artifact, write_artifact
from segdec.artifact.signatures import SIGNATURES
from segdec.config import Thresholds, config_error
from segdec.errors import ConfigError
from training.config import ThresholdConfig
from training.formatting import format_score

FLAG = "--threshold.score"
EXPECTED = (
    "Expected --threshold.score with a score: an exported model has no photographs to choose other "
    "thresholds on. Give the folder of its run for anything else."
)


def read_score(folder: Path, arguments: Sequence[str]) -> float:
    """Returns the score in the options of `calibrate` for the exported model in `folder`.
    Raises a `ConfigError` if there are others, or it is not a score.
    """
    values = [part for word in arguments for part in word.split("=", 1)]
    if len(values) != 2 or values[0] != FLAG:
        raise ConfigError(f"{folder} is an exported model. {EXPECTED}")
    try:
        score = ThresholdConfig.model_validate({"score": values[1]}).score
    except ValidationError as error:
        raise config_error(error, ThresholdConfig) from error
    assert score is not None
    return score


def set_model_threshold(folder: Path, score: float) -> Iterator[str]:
    """Sets the score threshold of the exported model in `folder`, in place; its signatures are removed.

    Yields:
        Messages for the terminal.

    Raises:
        ArtifactError: If the model cannot be read, has changed, or cannot be written.
    """
    artifact = open_artifact(folder)
    artifact.check_files()
    manifest, signed = artifact.manifest, any((folder / SIGNATURES).glob("*.sig"))
    former, review = manifest.thresholds.score, manifest.thresholds.review
    if review is not None and review >= score:
        yield f"The threshold for review, {format_score(review)}, is not below it and is removed."
        review = None
    thresholds = manifest.thresholds.model_copy(update={"score": score, "review": review})
    note = (
        f"The threshold was set from {format_score(former)} to {format_score(score)} after the export: "
        "metrics, rating and report are those of the former one."
    )
    changes = {
        "thresholds": thresholds,
        "operating_points": _with_chosen(manifest.operating_points, thresholds),
        "warnings": (*manifest.warnings, note),
    }

    def build(staged: Path) -> Manifest:
        for name in manifest.files:
            (staged / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, staged / name)
        return manifest.model_copy(update=changes)

    write_artifact(folder, build, overwrite=True)
    yield f"Defective from a score of {format_score(score)}, before from {format_score(former)}."
    if signed:
        yield f"Its signatures were removed, because the model has changed: segdec sign {folder} --key KEY"
    yield "A service that serves it has to reload it. Errors at this threshold: the slider of the report."


def _with_chosen(points: OperatingPoints | None, thresholds: Thresholds) -> OperatingPoints | None:
    """Puts the new threshold first; its errors are known if it is an offered point, without review."""
    if points is None:
        return None
    offered, score = points.points[1:], thresholds.score
    chosen = OperatingPoint(goal="chosen", threshold=score, rejected=None, missed=None)
    if thresholds.review is None and (same := [each for each in offered if each.threshold == score]):
        chosen = same[0].model_copy(update={"goal": "chosen", "note": None})
    return points.model_copy(update={"points": (chosen, *offered)})
