"""The weights of DINOv2's vision transformer from its PyTorch state dict."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from segdec.network.layers import all_layers
from segdec.network.vision_transformer import EXPANSION, PATCH, resize_patch_kernel

Array = NDArray[Any]

UNUSED = "mask_token"
"""Tensor of the file that only its own training needs."""

DENSE = {"qkv": "attn.qkv", "proj": "attn.proj", "fc1": "mlp.fc1", "fc2": "mlp.fc2"}
"""Dense layer of a block → its name in the file."""

SCALES = {"proj": "ls1.gamma", "fc2": "ls2.gamma"}
"""Dense layer of a block → scale of its output, which its weights here include."""


def state_dict_shapes(width: int, depth: int, grid: int, **_: Any) -> dict[str, tuple[int, ...]]:
    """Returns the shape of each tensor by name, for arguments of `build_vision_transformer`."""
    hidden = EXPANSION * width
    sides = {"qkv": (3 * width, width), "proj": (width, width)}
    sides |= {"fc1": (hidden, width), "fc2": (width, hidden)}
    block: dict[str, tuple[int, ...]] = dict.fromkeys(SCALES.values(), (width,))
    for name, shape in sides.items():
        block |= {f"{DENSE[name]}.weight": shape, f"{DENSE[name]}.bias": shape[:1]}
    for name in ("norm1", "norm2"):
        block |= {f"{name}.weight": (width,), f"{name}.bias": (width,)}
    return {
        "cls_token": (1, 1, width),
        "pos_embed": (1, 1 + grid * grid, width),
        UNUSED: (1, width),
        "patch_embed.proj.weight": (width, 3, PATCH, PATCH),
        "patch_embed.proj.bias": (width,),
        **{f"blocks.{number}.{name}": one for number in range(depth) for name, one in block.items()},
        "norm.weight": (width,),
        "norm.bias": (width,),
    }


def set_vision_transformer(network: keras.Model, tensors: dict[str, Array]) -> None:
    """Sets the weights of `build_vision_transformer` to those of a state dict with `state_dict_shapes`."""
    for layer in all_layers(network):
        if layer.weights:
            layer.set_weights(_layer_weights(layer, tensors))


def _layer_weights(layer: Any, tensors: dict[str, Array]) -> list[Array]:
    if layer.name == "position_embedding":
        (positions,) = tensors["pos_embed"]
        return [positions[1:].reshape(layer.positions.shape), tensors["cls_token"][0] + positions[:1]]
    if layer.name == "patch_embedding":
        kernel = resize_patch_kernel(tensors["patch_embed.proj.weight"].transpose(2, 3, 1, 0))
        return [kernel, tensors["patch_embed.proj.bias"]]
    *block, part = layer.name.removeprefix("block_").split("_")
    prefix = f"blocks.{block[0]}." if block else ""
    weight, bias = (tensors[f"{prefix}{DENSE.get(part, part)}.{one}"] for one in ("weight", "bias"))
    if part not in DENSE:  # a normalisation
        return [weight, bias]
    scale = tensors[prefix + SCALES[part]] if part in SCALES else np.float32(1.0)
    return [weight.T * scale, bias * scale]
