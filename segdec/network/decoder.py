"""The decoder: mask logits with a stride below 8."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import layers

from segdec.config import DECODER_KERNEL, STRIDE, NetworkConfig
from segdec.network.convolution import convolution
from segdec.network.layers import BilinearUpsampling, ComputePolicy


def refine_mask(
    coarse_logits: Any, features: Any, skips: Mapping[int, Any], config: NetworkConfig, policy: ComputePolicy
) -> Any:
    """Upsamples the coarse mask logits and adds a correction from finer features.

    The correction is initially zero, so that an untrained decoder returns the upsampled coarse mask.
    Upsampling is bilinear about pixel centres, as in `segdec.inference.preprocessing.restore_mask`.

    Args:
        coarse_logits: [B, H/8, W/8, M].
        features: [B, H/8, W/8, F].
        skips: Stride s → features [B, H/s, W/s, ·] of the encoder, for s = 4, 2 and 1 as needed.
        config: Stride of the mask and widths of the decoder.
        policy: How the network computes.

    Returns:
        Mask logits [B, H/s, W/s, M], s = `config.mask_stride`.

    Reference:
        Ronneberger et al., "U-Net: convolutional networks for biomedical image segmentation", 2015.
    """
    dtype, exact = policy.dtype, keras.config.floatx()
    x = convolution(features, config, policy, config.decoder_widths[0], 1, "decoder_features")
    for stride, width in zip((4, 2, 1), config.decoder_widths, strict=True):
        if stride < config.mask_stride:
            break
        x = BilinearUpsampling(2, dtype=dtype, name=f"decoder_{stride}_enlarged")(x)
        x = layers.Concatenate(dtype=dtype, name=f"decoder_{stride}_joined")([x, skips[stride]])
        x = convolution(x, config, policy, width, DECODER_KERNEL, f"decoder_{stride}")
    masks = config.mask_channels
    correction = layers.Conv2D(masks, 1, kernel_initializer="zeros", dtype=exact, name="mask_correction")(x)
    factor = STRIDE // config.mask_stride
    enlarged = BilinearUpsampling(factor, dtype=exact, name="mask_enlarged")(coarse_logits)
    return layers.Add(dtype=exact, name="fine_mask_logits")([enlarged, correction])
