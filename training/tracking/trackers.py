"""Which trackers an experiment asks for."""

from importlib import import_module

from segdec.errors import MissingExtraError
from training.config import ExperimentConfig
from training.tracking.tracker import Tracker


def check_tracking(tracking: str) -> None:
    """Call it before anything is written.

    Raises:
        MissingExtraError: If the tracker's package is not installed.
    """
    if tracking == "mlflow":
        try:
            import_module("mlflow")
        except ImportError as error:
            raise MissingExtraError("mlflow", group="mlflow") from error


def open_trackers(config: ExperimentConfig) -> list[Tracker]:
    """The trackers of a run, beside log.jsonl and TensorBoard."""
    if config.tracking == "none":
        return []
    from training.tracking.mlflow import MlflowTracker

    return [MlflowTracker(config)]
