"""Converts a network to OpenVINO, in float32, bfloat16 or quantised to int8."""

import logging
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segdec.config import NetworkConfig
from segdec.engines import Precision
from segdec.engines.openvino import SPECTRA
from segdec.engines.openvino_graph import MODEL
from segdec.engines.openvino_package import import_openvino
from segdec.errors import ConfigError, MissingExtraError
from segdec.export.saved_model import save_fourier_network
from segdec.network.folding import fourier_layers
from segdec.network.fourier import kernel_spectra
from segdec.network.fourier_convolution import FourierConv2D
from segdec.network.network import SegDecNet

ov = import_openvino()

MIN_SAVING: dict[Precision, float] = {"float32": 6.0, "bfloat16": 12.0, "int8": 12.0}
"""Reduction of multiplications from which Fourier transforms are faster than direct convolution, which
profits more from reduced precision. OpenVINO transforms a whole image at once, outside the cache."""

EXACT_KINDS = {"MatMul", "MVN"}
"""Operations that int8 excludes: the dense layer, Fourier transforms, and instance normalisation, whose
statistics would come from rounded numbers."""


def save_float(
    network: SegDecNet, folder: Path, precision: Precision = "float32", *, transform: bool = True
) -> bool:
    """Writes a network, with Fourier transforms for its large convolutions and their kernels next to it.

    The kernels' spectra, which are five times as large, are computed when the model is loaded. `network` is
    one for serving, see `segdec.network.folding`, that will run in `precision`; bfloat16 is set when it is
    loaded. `transform`: whether to use Fourier transforms.

    Returns:
        Whether any convolution uses Fourier transforms.
    """
    layers = fourier_layers(network, MIN_SAVING[precision]) if transform else []
    _save(_convert(network, layers), layers, folder)
    return bool(layers)


def save_int8(network: SegDecNet, folder: Path, photographs: Sequence[NDArray[np.uint8]]) -> None:
    """Quantises a folded network to int8, except Fourier transforms, and writes it.

    `network` is one for serving, see `segdec.network.folding`. The prepared `photographs`, uint8 [h, w, C]
    each, calibrate the value ranges.

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
    # It logs each layer. Its `set_log_level` would also change the handlers, which others may share.
    logging.getLogger("nncf").setLevel(logging.ERROR)
    layers = fourier_layers(network, MIN_SAVING["int8"])
    model = _convert(network, layers)
    spectra = {SPECTRA + one.name: kernel_spectra(np.asarray(one.kernel, np.float32)) for one in layers}
    inputs = [{"images": photograph[None], **spectra} for photograph in photographs]
    kinds = sorted(EXACT_KINDS & {node.get_type_name() for node in model.get_ops()})
    exact = nncf.IgnoredScope(names=_float32_operations(model, network.config), types=kinds)
    # Without it, sums overflow on CPUs without VNNI.
    half_range = nncf.AdvancedQuantizationParameters(overflow_fix=nncf.OverflowFix.ENABLE)
    quantized = nncf.quantize(
        model,
        nncf.Dataset(inputs),
        subset_size=len(inputs),
        ignored_scope=exact,
        advanced_parameters=half_range,
    )
    if network.config.memory:
        _subtract_mean_rounding_error(quantized, model, inputs)
    _save(quantized, layers, folder)


def _subtract_mean_rounding_error(quantized: Any, exact: Any, inputs: Sequence[dict[str, Any]]) -> None:
    """Subtracts the mean rounding error of `surface`, the mean patch, from all patches of the memory.

    It is similar in all patches, and would count as distance.
    """
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = [ov.compile_model(model, "CPU", settings) for model in (exact, quantized)]
    expected, rounded = (np.mean([each(one)["surface"][0] for one in inputs], axis=0) for each in compiled)
    mean = quantized.output("surface").get_node()
    while mean.get_type_name() != "ReduceMean":
        mean = mean.input_value(0).get_node()
    patches = mean.input_value(0)
    readers = patches.get_target_inputs()
    error = ov.op.Constant((rounded - expected).reshape(1, -1, 1, 1).astype(np.float32))
    corrected = ov.opset8.subtract(patches, error).output(0)
    for reader in readers:
        reader.replace_source_output(corrected)


def _float32_operations(model: Any, config: NetworkConfig) -> list[str]:
    """Returns the operations that stay in float32: the mask's 1×1 convolutions, decision network and memory.

    They are cheap and their precision matters. Also, OpenVINO 2026.4 loses the scale of a quantised
    convolution that is an output or is not followed by a quantised operation, and reads uninitialised memory
    in one with stride 2 of a grey image whose height is not a multiple of 16. The rounding of the first
    depthwise convolution causes most of the error of MobileNet's features.
    """
    ends = [model.output("mask_logits").get_node()] if config.heads else _inputs_of_memory(model)
    rounded = set().union(*map(_and_before, ends))
    depthwise = (node for node in model.get_ordered_ops() if node.get_type_name() == "GroupConvolution")
    kept = [node.get_friendly_name() for node in islice(depthwise, 1)]
    for node in model.get_ordered_ops():
        name, kind = node.get_friendly_name(), node.get_type_name()
        if kind in ("Constant", "Result"):
            continue
        kernel = node.get_input_partial_shape(1) if kind == "Convolution" else None  # [D, C, k, k]
        makes_masks = kernel is not None and kernel[0] == config.mask_channels and kernel[2] == kernel[3] == 1
        reads_grey = kernel is not None and kernel[1] == 1 and max(node.get_attributes()["strides"]) > 1
        if makes_masks or reads_grey or name not in rounded:
            kept.append(name)
    return kept


def _inputs_of_memory(model: Any) -> list[Any]:
    """Returns the operations whose results a memory projects: their squares go into a convolution too."""
    squares = (
        node.input_value(0).get_node() for node in model.get_ops() if node.get_type_name() == "Convolution"
    )
    return [
        node.input_value(0).get_node()
        for node in squares
        if node.get_type_name() == "Multiply" and node.input_value(0) == node.input_value(1)
    ]


def _and_before(node: Any) -> set[str]:
    """Returns the names of a node and of all nodes that it depends on."""
    names, waiting = {node.get_friendly_name()}, [node]
    while waiting:
        before = [port.get_node() for port in waiting.pop().input_values()]
        waiting += [one for one in before if one.get_friendly_name() not in names]
        names |= {one.get_friendly_name() for one in before}
    return names


def _convert(network: SegDecNet, layers: Sequence[FourierConv2D]) -> Any:
    """Converts the network to OpenVINO, with Fourier transforms for `layers`."""
    with tempfile.TemporaryDirectory() as saved:
        save_fourier_network(network, Path(saved), layers)
        model = ov.convert_model(saved)
    _keep_maximum_exact(model)
    # The temporary path of the source would make each export different.
    model.set_rt_info("", ["conversion_parameters", "input_model"])
    return model


def _keep_maximum_exact(model: Any) -> None:
    """Makes convolutions whose maximum over the channels is used return float32 in every precision.

    The memory subtracts that maximum from a number of the same size. OpenVINO would round it to bfloat16, but
    takes the type of a result from an operation after the bias.
    """
    for node in model.get_ordered_ops():
        before = node.input_value(0).get_node() if node.get_type_name() == "ReduceMax" else None
        if before is not None and before.get_type_name() == "Add":
            limit = float(np.finfo(np.float32).max)
            node.input(0).replace_source_output(ov.opset8.clamp(before, -limit, limit).output(0))


def _save(model: Any, layers: Sequence[FourierConv2D], folder: Path) -> None:
    """Writes a model with reproducible names: OpenVINO numbers the operations of the whole process."""
    for place, node in enumerate(model.get_ordered_ops()):
        if node.get_type_name() != "Parameter":
            node.set_friendly_name(f"{node.get_type_name()}_{place}")
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(model, folder / MODEL, compress_to_fp16=False)
    for layer in layers:
        np.save(folder / f"{layer.name}.npy", np.asarray(layer.kernel, np.float32), allow_pickle=False)
