"""Plain conversions of the network by its libraries, without our export: the baseline of each engine.

TensorFlow runs the trained Keras network. OpenVINO runs `openvino.convert_model` of it with the settings and
threads of our engines, compiled for the size of the images; int8 is `nncf.quantize` of that.
"""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.inference.peers.answering import Answer, Infer, answer_inferences
from segdec.engines import ENGINES
from segdec.runtime.cli import import_tensorflow
from segdec.runtime.cpu_features import has_bfloat16
from segdec.runtime.threads import available_cores

SAVED = "plain"
MODELS = {"float32": "plain-float32.xml", "bfloat16": "plain-float32.xml", "int8": "plain-int8.xml"}
"""OpenVINO file by precision; bfloat16 is a runtime setting."""


def plain_counterpart(engine: str) -> str:
    """Returns the engine whose plain conversion is the baseline: TensorFlow has none in bfloat16."""
    return "tensorflow" if ENGINES[engine].package == "tensorflow" else engine


def write_plain_conversions(
    network: Any, folder: Path, engines: Sequence[str], photographs: Sequence[NDArray[np.uint8]]
) -> None:
    """Writes the conversions of `network` for `engines`; `photographs` uint8 [h, w, C] calibrate int8."""
    from segdec.export.saved_model import save_network

    save_network(network, folder / SAVED)
    precisions = {ENGINES[engine].precision for engine in engines if ENGINES[engine].package == "openvino"}
    if not precisions:
        return
    import openvino

    model = openvino.convert_model(folder / SAVED)
    openvino.save_model(model, folder / MODELS["float32"], compress_to_fp16=False)
    if "int8" in precisions:
        import nncf

        images = nncf.Dataset([{"images": photograph[None]} for photograph in photographs])
        quantized = nncf.quantize(model, images, subset_size=len(photographs))
        openvino.save_model(quantized, folder / MODELS["int8"], compress_to_fp16=False)


def load(folder: Path, engine: str) -> tuple[Infer, str]:
    """Loads the plain conversion for `engine`."""
    kind = ENGINES[engine]
    infer = _load_tensorflow(folder) if kind.package == "tensorflow" else _load_openvino(folder, engine)
    return infer, f"{kind.package} {version(kind.package)}"


def _load_tensorflow(folder: Path) -> Infer:
    import_tensorflow()
    import tensorflow as tf

    model = tf.saved_model.load(str(folder / SAVED))

    def infer(images: NDArray[np.uint8]) -> Answer:
        answer = model.serve(tf.constant(images))
        return np.asarray(answer["mask_logits"]), np.asarray(answer["class_logits"])

    return infer


def _load_openvino(folder: Path, engine: str) -> Infer:
    from segdec.engines.openvino_package import openvino_core

    precision = ENGINES[engine].precision
    settings = {
        "INFERENCE_PRECISION_HINT": "bf16" if precision != "float32" and has_bfloat16() else "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": available_cores(),
    }
    model = openvino_core().read_model(folder / MODELS[precision])
    requests: dict[tuple[int, ...], Any] = {}

    def infer(images: NDArray[np.uint8]) -> Answer:
        if images.shape not in requests:
            model.reshape(images.shape)
            compiled = openvino_core().compile_model(model, "CPU", settings)
            requests[images.shape] = compiled.create_infer_request()
        answer = requests[images.shape].infer({"images": images})
        return np.array(answer["mask_logits"]), np.array(answer["class_logits"])

    return infer


if __name__ == "__main__":
    answer_inferences(load)
