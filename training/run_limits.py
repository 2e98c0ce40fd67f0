"""The limits of photographs like those of the training, of a finished run."""

import sys

from segdec.artifact import TrainingPhotographs
from segdec.errors import SegdecError
from training.data.array_cache import ArrayCache
from training.data.example_source import PhotographSource
from training.data.run_data import item_reader
from training.photograph_limits import add_limits
from training.run.folder import RunFolder


def find_limits(folder: RunFolder) -> TrainingPhotographs | None:
    """Returns the facts about the training photographs of a run, with limits, which earlier versions lack."""
    experiment, result = folder.experiment(), folder.result()
    trained, channels = result.training_photographs, result.model.network.input_channels
    if trained is None or trained.limits is not None:
        return trained
    read, cache = item_reader(experiment), ArrayCache(0)
    try:
        items = folder.items("train")
        photographs = PhotographSource(items, read, result.model.input, channels, cache)
        infer = folder.predictor().infer if result.model.network.memory else None
        return add_limits(trained, photographs, infer)
    except SegdecError as error:
        reason = f"its training photographs cannot be read to tell which are unlike them: {error}"
        print(f"note: The model inspects any photograph: {reason}", file=sys.stderr)
        return trained
