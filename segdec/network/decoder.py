"""The decoder: mask logits finer than 1/8 of the image."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import layers

from segdec.config import DECODER_KERNEL, STRIDE, NetworkConfig
from segdec.network.convolution import convolution
from segdec.network.layers import DEFAULT_POLICY, BilinearUpsampling, ComputePolicy


def refine_mask(
    coarse_logits: Any,
    features: Any,
    skips: Mapping[int, Any],
    config: NetworkConfig,
    policy: ComputePolicy = DEFAULT_POLICY,
) -> Any:
    """Enlarges the coarse mask logits smoothly and adds a correction that finer features know.

    The correction starts as zero, so that an untrained decoder gives the enlarged coarse mask and training
    begins from what the network knows already. Enlarging is bilinear about pixel centres, as
    `segdec.inference.preprocessing.restore_mask` does it.

    Args:
        coarse_logits: [B, H/8, W/8, M], one for each mask.
        features: [B, H/8, W/8, F].
        skips: Stride s → features [B, H/s, W/s, ·] of the way down, for s = 4, 2 and 1 as far as needed.
        config: Stride of the mask and widths of the decoder.
        policy: How it computes while it is trained.

    Returns:
        Mask logits [B, H/s, W/s, M], s = `config.mask_stride`.

    Reference:
        Ronneberger et al., "U-Net: convolutional networks for biomedical image segmentation", 2015.
    """
    dtype, exact = policy.dtype, keras.config.floatx()
    x = convolution(features, config, policy, config.decoder_widths[0], 1, "decoder_features")
    for stride, width in decoder_steps(config):
        x = BilinearUpsampling(2, dtype=dtype, name=f"decoder_{stride}_enlarged")(x)
        x = layers.Concatenate(dtype=dtype, name=f"decoder_{stride}_joined")([x, skips[stride]])
        x = convolution(x, config, policy, width, DECODER_KERNEL, f"decoder_{stride}")
    masks = config.mask_channels
    correction = layers.Conv2D(masks, 1, kernel_initializer="zeros", dtype=exact, name="mask_correction")(x)
    factor = STRIDE // config.mask_stride
    enlarged = BilinearUpsampling(factor, dtype=exact, name="mask_enlarged")(coarse_logits)
    return layers.Add(dtype=exact, name="fine_mask_logits")([enlarged, correction])


def decoder_steps(config: NetworkConfig) -> list[tuple[int, int]]:
    """Returns stride and width of each convolution of the decoder, the coarsest first; none at stride 8."""
    steps = zip((4, 2, 1), config.decoder_widths, strict=True)
    return [(stride, width) for stride, width in steps if stride >= config.mask_stride]
