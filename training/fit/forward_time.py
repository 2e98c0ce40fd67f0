"""The duration of a forward pass, from which `fit` decides about encoder and size of the input."""

import statistics
import tempfile
from pathlib import Path

import numpy as np

from segdec.engines import ENGINES
from segdec.engines.tensorflow import NetworkEngine
from segdec.export.model_export import write_engine
from segdec.network.network import build_network
from segdec.predictor import Predictor
from training.config import ExperimentConfig
from training.data.run_data import build_model_config
from training.export import DEFAULTS
from training.fit.time_control import Clock

WARM_UPS, ROUNDS = 2, 9

FORWARD_ROUNDS, MAX_FORWARD_S = 7, 1.0
"""Forward passes that are measured, and the duration after which no further one is measured, s."""


def measure_forward(
    config: ExperimentConfig, classes: tuple[str, ...], size: tuple[int, int], clock: Clock
) -> float:
    """Returns the median duration of predicting a photograph of this size [h, w] with random weights, s."""
    model = build_model_config(config, classes)
    predictor = Predictor(NetworkEngine(build_network(model.network)), model)
    black = np.zeros((*size, model.network.input_channels), np.uint8)
    predictor.predict([black])  # compiles
    durations: list[float] = []
    while len(durations) < FORWARD_ROUNDS and sum(durations) < MAX_FORWARD_S:
        began = clock()
        predictor.predict([black])
        durations.append(clock() - began)
    return statistics.median(durations)


def measure_serving(
    config: ExperimentConfig, classes: tuple[str, ...], size: tuple[int, int], clock: Clock
) -> float:
    """Returns the median duration of predicting a photograph with the engine that `fit` exports, ms."""
    model = build_model_config(config, classes)
    network, (engine, *_) = build_network(model.network), DEFAULTS.engines
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / engine
        write_engine(engine, network, folder, [])
        predictor = Predictor(ENGINES[engine].load(folder), model)
        black = np.zeros((*size, model.network.input_channels), np.uint8)
        durations = []
        for _ in range(WARM_UPS + ROUNDS):
            began = clock()
            predictor.predict([black])
            durations.append(clock() - began)
    return 1000 * statistics.median(durations[WARM_UPS:])
