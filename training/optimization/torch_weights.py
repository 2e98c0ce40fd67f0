"""Reads PyTorch state dicts without PyTorch; no code of a file is executed."""

import io
import pickle
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any
from zipfile import ZIP_STORED, ZipFile, is_zipfile

import keras
import numpy as np
from numpy.typing import NDArray

from segdec.errors import ConfigError
from segdec.network.layers import all_layers

Array = NDArray[Any]

MAGIC_NUMBER, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
"""First two pickles of the format that PyTorch wrote before version 1.6."""

NORMS = {"stem": "_bn0", "expand": "_bn0", "depthwise": "_bn1", "project": "_bn2"}
"""Convolution → batch normalisation after it."""


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def _rebuild_tensor(*arguments: Any) -> _Tensor:
    return _Tensor(*arguments[:4])


class _Unpickler(pickle.Unpickler):
    """Resolves the four names of a state dict to classes and functions of this module, and nothing else."""

    names = {  # noqa: RUF012 - a constant
        ("collections", "OrderedDict"): OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
        ("torch", "FloatStorage"): np.dtype("<f4"),
        ("torch", "LongStorage"): np.dtype("<i8"),
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.names:
            raise pickle.UnpicklingError(f"'{module}.{name}' is not part of a state dict")
        return self.names[module, name]

    def persistent_load(self, pid: Any) -> _Storage:
        (_, dtype, key, *_) = pid
        return _Storage(key, dtype)


def read_state_dict(data: bytes) -> dict[str, Array]:
    """Reads a file's tensors by name.
    Raises a `ConfigError` if it is not a state dict of float32 and int64 tensors.
    """
    try:
        if is_zipfile(io.BytesIO(data)):
            return _read_archive(io.BytesIO(data))
        return _read_before_1_6(io.BytesIO(data))
    except Exception as error:  # a damaged pickle raises various types
        raise ConfigError(f"Not a PyTorch state dict: {error}. Expected the unchanged file.") from error


def _read_archive(file: io.BytesIO) -> dict[str, Array]:
    """Reads the format since version 1.6: `NAME/data.pkl`, and a file `NAME/data/KEY` for each storage."""
    with ZipFile(file) as archive:
        if any(one.compress_type != ZIP_STORED for one in archive.infolist()):
            raise ValueError("its content is compressed")
        (pickled,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        tensors = _Unpickler(io.BytesIO(archive.read(pickled))).load()
        folder = pickled.removesuffix(".pkl")
        arrays = {}
        for name, tensor in tensors.items():
            content = archive.read(f"{folder}/{tensor.storage.key}")
            arrays[name] = _array(tensor, np.frombuffer(content, tensor.storage.dtype))
        return arrays


def _read_before_1_6(file: io.BytesIO) -> dict[str, Array]:
    if [_Unpickler(file).load() for _ in range(2)] != [MAGIC_NUMBER, PROTOCOL]:
        raise ValueError("unknown format")
    _, tensors, keys = (_Unpickler(file).load() for _ in range(3))
    dtypes = {tensor.storage.key: tensor.storage.dtype for tensor in tensors.values()}
    storages = {}
    for key in keys:
        size = int.from_bytes(file.read(8), "little") * dtypes[key].itemsize
        content = file.read(size)
        if len(content) != size:
            raise ValueError("the file is incomplete")
        storages[key] = np.frombuffer(content, dtypes[key])
    return {name: _array(tensor, storages[tensor.storage.key]) for name, tensor in tensors.items()}


def _array(tensor: _Tensor, storage: Array) -> Array:
    last = sum((side - 1) * step for side, step in zip(tensor.shape, tensor.stride, strict=True))
    if min(tensor.offset, *tensor.shape, *tensor.stride, 0) < 0 or tensor.offset + last >= len(storage):
        raise ValueError("a tensor exceeds its storage")
    strides = [step * storage.itemsize for step in tensor.stride]  # kernels were transposed
    return np.lib.stride_tricks.as_strided(storage[tensor.offset :], tensor.shape, strides, writeable=False)


def set_efficientnet_lite(network: keras.Model, tensors: dict[str, Array]) -> None:
    """Sets the weights of `build_efficientnet_lite` to those of a state dict.
    Raises a `ConfigError` if the tensors are of another network.
    """
    for layer in all_layers(network):
        if layer.weights:
            try:
                layer.set_weights(_layer_weights(layer, tensors))
            except (KeyError, ValueError) as error:
                raise ConfigError(
                    f"The state dict does not fit layer '{layer.name}': {error}. "
                    "Expected the weights of this EfficientNet-Lite."
                ) from error


def _layer_weights(layer: keras.layers.Layer, tensors: dict[str, Array]) -> list[Array]:
    *block, part, kind = layer.name.removeprefix("block_").split("_")
    prefix = f"_blocks.{block[0]}." if block else ""
    if kind == "bn":
        norm = prefix + NORMS[part]
        return [tensors[f"{norm}.{one}"] for one in ("weight", "bias", "running_mean", "running_var")]
    kernel = tensors[f"{prefix}_{part}_conv.weight" if block else "_conv_stem.weight"]
    axes = (2, 3, 0, 1) if isinstance(layer, keras.layers.DepthwiseConv2D) else (2, 3, 1, 0)
    return [kernel.transpose(axes)]
