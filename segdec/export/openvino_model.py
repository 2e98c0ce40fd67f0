"""Converts a network to OpenVINO, in float32, bfloat16 or quantised to int8."""

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segdec.engines import Precision
from segdec.engines.openvino import SPECTRA
from segdec.engines.openvino_graph import MODEL
from segdec.engines.openvino_package import import_openvino
from segdec.errors import ConfigError, MissingExtraError
from segdec.export.saved_model import save_fourier_network, save_network
from segdec.network.folding import fourier_layers
from segdec.network.fourier import kernel_spectra
from segdec.network.fourier_convolution import FourierConv2D
from segdec.network.network import SegDecNet

ov = import_openvino()

_ORIGIN = ["conversion_parameters", "input_model"]
"""Metadata of a converted model with its source path."""

MIN_SAVING: dict[Precision, float] = {"float32": 6.0, "bfloat16": 12.0, "int8": 12.0}
"""Reduction of multiplications from which Fourier transforms are faster than direct convolution, which
profits more from reduced precision. OpenVINO transforms a whole image at once, outside the cache."""

EXACT_KINDS = {"MatMul", "MVN"}
"""Operations that int8 excludes: the dense layer, Fourier transforms, and instance normalisation, whose
statistics would come from rounded numbers."""


def save_float(
    network: SegDecNet, folder: Path, precision: Precision = "float32", *, transform: bool = True
) -> bool:
    """Writes the network, with Fourier transforms for its large convolutions and their kernels next to it.

    The kernels' spectra, which are five times as large, are computed when the model is loaded.

    Args:
        network: Network for serving, see `segdec.network.folding`.
        folder: New folder.
        precision: Precision in which it will run; bfloat16 is set when it is loaded.
        transform: Whether to use Fourier transforms.

    Returns:
        Whether any convolution uses Fourier transforms.
    """
    layers = fourier_layers(network, MIN_SAVING[precision]) if transform else []
    _save(_convert(network, layers), folder)
    _save_kernels(layers, folder)
    return bool(layers)


def save_int8(network: SegDecNet, folder: Path, photographs: Sequence[NDArray[np.uint8]]) -> None:
    """Quantises the network to int8 after training, except Fourier transforms, and writes it.

    Args:
        network: Network for serving, see `segdec.network.folding`.
        folder: New folder.
        photographs: Prepared photographs, uint8 [h, w, C] each, that calibrate the value ranges.

    Raises:
        ConfigError: If there are no photographs.
        MissingExtraError: If NNCF, which quantises, is not installed.
    """
    if not photographs:
        raise ConfigError(
            "There is no validation photograph to calibrate int8. Expected the run's data set at its path; "
            "restore it or remove openvino-int8 from --engines."
        )
    try:
        import nncf
    except ImportError as error:
        raise MissingExtraError("nncf", group="quantize") from error
    nncf.set_log_level(logging.ERROR)  # else it logs each layer
    layers = fourier_layers(network, MIN_SAVING["int8"])
    model = _convert(network, layers)
    spectra = {SPECTRA + layer.name: kernel_spectra(_kernel(layer)) for layer in layers}
    inputs = nncf.Dataset([{"images": photograph[None], **spectra} for photograph in photographs])
    kinds = sorted(EXACT_KINDS & {node.get_type_name() for node in model.get_ops()})
    exact = nncf.IgnoredScope(names=_kept_exact(model, network.config.mask_channels), types=kinds)
    # Bias correction by the means of an encoder's features triples the error of the masks.
    uncorrected = nncf.AdvancedQuantizationParameters(disable_bias_correction=network.encoder is not None)
    quantized = nncf.quantize(
        model, inputs, subset_size=len(photographs), ignored_scope=exact, advanced_parameters=uncorrected
    )
    _save(quantized, folder)
    _save_kernels(layers, folder)


def _kept_exact(model: Any, masks: int) -> list[str]:
    """Returns the operations that stay in float32: the mask's 1×1 convolutions and the decision network.

    They are cheap and their precision matters. Also, OpenVINO 2026.4 loses the scale of a quantised
    convolution that is an output or is not followed by a quantised operation.
    """
    nodes = [node for node in model.get_ordered_ops() if node.get_type_name() not in ("Constant", "Result")]
    segmentation = _and_before(model.output("mask_logits").get_node())
    decision = [node for node in nodes if node.get_friendly_name() not in segmentation]
    heads = [
        node
        for node in nodes
        if node.get_type_name() == "Convolution" and _makes_masks(node.get_input_partial_shape(1), masks)
    ]
    return [node.get_friendly_name() for node in [*heads, *decision]]


def _makes_masks(kernel: Any, masks: int) -> bool:
    """Returns whether a convolution with this kernel [D, C, k, k] computes the logits of `masks` masks."""
    return bool(kernel[0] == masks and kernel[2] == kernel[3] == 1)


def _and_before(node: Any) -> set[str]:
    """Returns the names of a node and of all nodes that it depends on."""
    found, waiting = {node.get_friendly_name()}, [node]
    while waiting:
        before = [port.get_node() for port in waiting.pop().input_values()]
        waiting += [one for one in before if one.get_friendly_name() not in found]
        found |= {one.get_friendly_name() for one in before}
    return found


def _convert(network: SegDecNet, layers: Sequence[FourierConv2D] = ()) -> Any:
    """Converts the network to OpenVINO, with Fourier transforms for `layers`."""
    with tempfile.TemporaryDirectory() as saved:
        if layers:
            save_fourier_network(network, Path(saved), layers)
        else:
            save_network(network, Path(saved))
        model = ov.convert_model(saved)
    model.set_rt_info("", _ORIGIN)  # it is a temporary path, which would make each export different
    return model


def _save_kernels(layers: Sequence[FourierConv2D], folder: Path) -> None:
    for layer in layers:
        np.save(folder / f"{layer.name}.npy", _kernel(layer), allow_pickle=False)


def _kernel(layer: FourierConv2D) -> NDArray[np.float32]:
    return np.asarray(layer.kernel, np.float32)


def _save(model: Any, folder: Path) -> None:
    """Writes a model with reproducible names: OpenVINO numbers the operations of the whole process."""
    for place, node in enumerate(model.get_ordered_ops()):
        if node.get_type_name() != "Parameter":
            node.set_friendly_name(f"{node.get_type_name()}_{place}")
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(model, folder / MODEL, compress_to_fp16=False)
