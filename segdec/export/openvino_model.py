"""A network as a model of OpenVINO: in float32 and bfloat16, or quantised to int8."""

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
"""Where a converted model says what it was made of."""

MIN_SAVING: dict[Precision, float] = {"float32": 6.0, "bfloat16": 12.0, "int8": 12.0}
"""From so many times fewer multiplications on, transforms are faster than a direct convolution, which reduced
precision speeds up the most. OpenVINO transforms all of an image at once, outside the cache."""

EXACT_KINDS = {"MatMul", "MVN"}
"""Operations that int8 leaves as they are: the dense layer, Fourier transforms, and instance normalisation,
whose means and variances would be those of rounded numbers."""


def save_float(
    network: SegDecNet, folder: Path, precision: Precision = "float32", *, transform: bool = True
) -> bool:
    """Writes the network with its large convolutions by Fourier transforms, and their kernels beside it.

    The kernels' spectra, five times as large, are computed where it is loaded.

    Args:
        network: As it shall be served.
        folder: Is made.
        precision: In which it will multiply: bfloat16 is a setting where it is loaded.
        transform: Whether to convolve so; directly otherwise.

    Returns:
        Whether there is a convolution by Fourier transforms in it.
    """
    layers = fourier_layers(network, MIN_SAVING[precision]) if transform else []
    _save(_convert(network, layers), folder)
    _save_kernels(layers, folder)
    return bool(layers)


def save_int8(network: SegDecNet, folder: Path, photographs: Sequence[NDArray[np.uint8]]) -> None:
    """Writes the network quantised to int8 after training; what runs by Fourier transforms stays as it was.

    Args:
        network: As it shall be served.
        folder: Is made.
        photographs: Prepared ones, uint8 [h, w, C] each, that show the ranges of what is computed.

    Raises:
        ConfigError: If there are no photographs.
        MissingExtraError: If NNCF, which quantises, is not installed.
    """
    if not photographs:
        raise ConfigError(
            "No validation photograph to calibrate int8 with. Expected the data set of the run where it was; "
            "put it back or leave openvino-int8 out of --engines."
        )
    try:
        import nncf
    except ImportError as error:
        raise MissingExtraError("nncf", group="quantize") from error
    nncf.set_log_level(logging.ERROR)  # it tells of each layer
    layers = fourier_layers(network, MIN_SAVING["int8"])
    model = _convert(network, layers)
    spectra = {SPECTRA + layer.name: kernel_spectra(_kernel(layer)) for layer in layers}
    inputs = nncf.Dataset([{"images": photograph[None], **spectra} for photograph in photographs])
    kinds = sorted(EXACT_KINDS & {node.get_type_name() for node in model.get_ops()})
    exact = nncf.IgnoredScope(names=_kept_exact(model, network.config.mask_channels), types=kinds)
    # Means of an encoder's features tell too little: corrected by them, masks are three times as wrong.
    uncorrected = nncf.AdvancedQuantizationParameters(disable_bias_correction=network.encoder is not None)
    quantized = nncf.quantize(
        model,
        inputs,
        subset_size=len(photographs),
        ignored_scope=exact,
        advanced_parameters=uncorrected,
    )
    _save(quantized, folder)
    _save_kernels(layers, folder)


def _kept_exact(model: Any, masks: int) -> list[str]:
    """Names of what stays in float32: the convolutions to mask logits (1×1) and the decision network.

    They cost next to nothing, and they decide. OpenVINO 2026.4 also forgets the scale of a quantised
    convolution that is an output, or that nothing quantised follows.
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
    """Whether a convolution of this kernel [D, C, k, k] is one to the logits of so many masks."""
    return bool(kernel[0] == masks and kernel[2] == kernel[3] == 1)


def _and_before(node: Any) -> set[str]:
    """Names of a node and of all that it depends on."""
    found, waiting = {node.get_friendly_name()}, [node]
    while waiting:
        before = [port.get_node() for port in waiting.pop().input_values()]
        waiting += [one for one in before if one.get_friendly_name() not in found]
        found |= {one.get_friendly_name() for one in before}
    return found


def _convert(network: SegDecNet, layers: Sequence[FourierConv2D] = ()) -> Any:
    """The network as a model of OpenVINO, in which `layers` convolve by Fourier transforms."""
    with tempfile.TemporaryDirectory() as saved:
        if layers:
            save_fourier_network(network, Path(saved), layers)
        else:
            save_network(network, Path(saved))
        model = ov.convert_model(saved)
    model.set_rt_info("", _ORIGIN)  # a folder of this process, else: each export would be another
    return model


def _save_kernels(layers: Sequence[FourierConv2D], folder: Path) -> None:
    for layer in layers:
        np.save(folder / f"{layer.name}.npy", _kernel(layer), allow_pickle=False)


def _kernel(layer: FourierConv2D) -> NDArray[np.float32]:
    return np.asarray(layer.kernel, np.float32)


def _save(model: Any, folder: Path) -> None:
    """Writes a model, its operations named by their places: OpenVINO counts those of the whole process."""
    for place, node in enumerate(model.get_ordered_ops()):
        if node.get_type_name() != "Parameter":
            node.set_friendly_name(f"{node.get_type_name()}_{place}")
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(model, folder / MODEL, compress_to_fp16=False)
