"""SegDecNet in PyTorch, with the weights of the Keras network and its layer names.

The benchmark reports how much the outputs of the two networks differ.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

KERNEL, DECODER_KERNEL, STRIDE, EPSILON = 5, 3, 8, 1e-3
BATCH_NORM_MOMENTUM = 0.1
"""PyTorch's momentum is one minus that of Keras."""


class SegDecNet(nn.Module):
    """Segmentation network, decoder where the mask is finer than 1/8, and decision network.

    Args:
        config: `NetworkConfig` as a mapping, with batch or instance normalisation, a mask head without
            normalisation, and a sigmoid before the decision network.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.config = config
        self.blocks = nn.ModuleDict()
        channels, skips = config["input_channels"], {}
        for block, widths in enumerate(config["segmentation_widths"], start=1):
            for index, width in enumerate(widths, start=1):
                channels = self._add(f"segmentation_{block}_{index}", channels, width, KERNEL)
            skips[2 ** (block - 1)] = channels
        features = self._add("features", channels, config["feature_width"], config["feature_kernel"])
        self.mask_logits = nn.Conv2d(features, 1, 1)
        self._add_decoder(features, skips)
        channels = features + 1
        for index, width in enumerate(config["decision_widths"], start=1):
            channels = self._add(f"decision_{index}", channels, width, KERNEL)
        self.class_logits = nn.Linear(2 * channels + 2, config["num_classes"])

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Maps images [B, H, W, C] to mask logits [B, H/s, W/s, 1] and class logits [B, classes]."""
        x = images.permute(0, 3, 1, 2).to(torch.float32) / 255.0
        skips = {}
        for block, widths in enumerate(self.config["segmentation_widths"], start=1):
            for index in range(1, len(widths) + 1):
                x = self.blocks[f"segmentation_{block}_{index}"](x)
            skips[2 ** (block - 1)] = x
            x = functional.max_pool2d(x, 2)
        features = self.blocks["features"](x)
        coarse_logits = self.mask_logits(features)
        mask_logits = self._refine(coarse_logits, features, skips)
        return mask_logits.permute(0, 2, 3, 1), self._decide(features, coarse_logits)

    def load_weights(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        """Loads the Keras weights, `layer/variable` → array."""
        for name, block in self.blocks.items():
            _fill(block[0].weight, weights[f"{name}/kernel"].transpose(3, 2, 0, 1))
            for ours, theirs in NORM_WEIGHTS.items():
                if f"{name}_norm/{theirs}" in weights:
                    _fill(getattr(block[1], ours), weights[f"{name}_norm/{theirs}"])
        for name in ("mask_logits", "mask_correction"):
            if hasattr(self, name):
                _fill(getattr(self, name).weight, weights[f"{name}/kernel"].transpose(3, 2, 0, 1))
                _fill(getattr(self, name).bias, weights[f"{name}/bias"])
        _fill(self.class_logits.weight, weights["class_logits/kernel"].T)
        _fill(self.class_logits.bias, weights["class_logits/bias"])

    def _add(self, name: str, channels: int, width: int, kernel: int) -> int:
        self.blocks[name] = nn.Sequential(
            nn.Conv2d(channels, width, kernel, padding=kernel // 2, bias=False),
            NORMALIZATIONS[self.config["normalization"]](width),
            nn.ReLU(inplace=True),
        )
        return width

    def _add_decoder(self, features: int, skips: Mapping[int, int]) -> None:
        if self.config["mask_stride"] == STRIDE:
            return
        channels = self._add("decoder_features", features, self.config["decoder_widths"][0], 1)
        for stride, width in self._decoder_steps():
            channels = self._add(f"decoder_{stride}", channels + skips[stride], width, DECODER_KERNEL)
        self.mask_correction = nn.Conv2d(channels, 1, 1)

    def _decoder_steps(self) -> list[tuple[int, int]]:
        steps = zip((4, 2, 1), self.config["decoder_widths"], strict=True)
        return [(stride, width) for stride, width in steps if stride >= self.config["mask_stride"]]

    def _refine(self, coarse_logits: Tensor, features: Tensor, skips: Mapping[int, Tensor]) -> Tensor:
        if self.config["mask_stride"] == STRIDE:
            return coarse_logits
        x = self.blocks["decoder_features"](features)
        for stride, _ in self._decoder_steps():
            x = self.blocks[f"decoder_{stride}"](torch.cat([enlarge(x, 2), skips[stride]], 1))
        return enlarge(coarse_logits, STRIDE // self.config["mask_stride"]) + self.mask_correction(x)

    def _decide(self, features: Tensor, mask_logits: Tensor) -> Tensor:
        mask = torch.sigmoid(mask_logits)
        if self.config["gradient_gate"]:
            features, mask = features.detach(), mask.detach()
        x = torch.cat([features, mask], 1)
        for index in range(1, len(self.config["decision_widths"]) + 1):
            x = self.blocks[f"decision_{index}"](functional.max_pool2d(x, 2, ceil_mode=True))
        pooled = [pool(volume, (2, 3)) for volume in (x, mask) for pool in (torch.mean, torch.amax)]
        return self.class_logits(torch.cat(pooled, 1))


def load_network(folder: Path) -> SegDecNet:
    """Loads the network of `network.json` with the weights of `weights.npz`."""
    config = json.loads((folder / "network.json").read_text(encoding="utf-8"))
    network = SegDecNet(config)
    with np.load(folder / "weights.npz") as weights:
        network.load_weights(weights)
    return network


def enlarge(images: Tensor, factor: int) -> Tensor:
    """Enlarges bilinearly about pixel centres."""
    return functional.interpolate(images, scale_factor=factor, mode="bilinear", align_corners=False)


def _batch_norm(width: int) -> nn.Module:
    return nn.BatchNorm2d(width, eps=EPSILON, momentum=BATCH_NORM_MOMENTUM)


def _instance_norm(width: int) -> nn.Module:
    return nn.InstanceNorm2d(width, eps=EPSILON, affine=True)


NORMALIZATIONS = {"batch": _batch_norm, "instance": _instance_norm}
NORM_WEIGHTS = {
    "weight": "gamma",
    "bias": "beta",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
}
"""Name in PyTorch → name in Keras."""


def _fill(tensor: Tensor, values: NDArray[np.float32]) -> None:
    with torch.no_grad():
        tensor.copy_(torch.from_numpy(np.ascontiguousarray(values)))
