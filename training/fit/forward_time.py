"""The duration of a forward pass, from which `fit` decides about the size of the input."""

import numpy as np

from segdec.engines.tensorflow import NetworkEngine
from segdec.network.network import build_network
from segdec.predictor import Predictor
from training.config import ExperimentConfig
from training.data.run_data import build_model_config
from training.fit.time_control import Clock


def measure_forward(
    config: ExperimentConfig, classes: tuple[str, ...], size: tuple[int, int], clock: Clock
) -> float:
    """Returns the duration of predicting a photograph of this height and width with random weights, s."""
    model = build_model_config(config, classes)
    predictor = Predictor(NetworkEngine(build_network(model.network)), model)
    black = np.zeros((*size, model.network.input_channels), np.uint8)
    predictor.predict([black])  # compiles
    began = clock()
    predictor.predict([black])
    return clock() - began
