"""What an engine loads, written from a network: a folder of the artifact."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from segdec.engines import ENGINES
from segdec.export.saved_model import save_network
from segdec.network.folding import inference_network
from segdec.network.network import SegDecNet


def write_engine(name: str, network: SegDecNet, folder: Path, prepared: Sequence[NDArray[np.uint8]]) -> None:
    """Writes what the engine `name` loads into `folder`, which is made.

    Args:
        name: See `segdec.engines.ENGINES`.
        network: Trained.
        folder: Inside the artifact.
        prepared: Photographs as the network sees them, uint8 [h, w, C] each, to calibrate int8 with.

    Raises:
        ConfigError: If int8 is to be calibrated without photographs.
        MissingExtraError: If a package is not installed.
    """
    kind = ENGINES[name]
    if kind.package == "tensorflow":
        dtype = "mixed_bfloat16" if kind.precision == "bfloat16" else None
        save_network(inference_network(network, dtype), folder)
        return
    from segdec.export import openvino_model

    served = inference_network(network)
    if kind.precision == "int8":
        openvino_model.save_int8(served, folder, prepared)
    else:
        openvino_model.save_float(served, folder)
