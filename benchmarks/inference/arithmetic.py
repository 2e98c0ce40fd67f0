"""How much arithmetic the network is when every convolution is computed directly."""

from segdec.config import DECODER_KERNEL, KERNEL, STRIDE, NetworkConfig

TRAINING = 3
"""A training step is three times the forward pass: the gradient of a layer is two products of its size."""


def network_flop(config: NetworkConfig, height: int, width: int) -> int:
    """Counts floating-point operations for an image: two a product of convolutions and dense layer.

    An algorithm with fewer products than a direct convolution has, as the FFT's or Winograd's, is not
    credited for it: measured against this number it can pass the machine's peak.
    """
    products, channels, skips = 0, config.input_channels, {}
    pixels, stride = height * width, 1
    for widths in config.segmentation_widths:
        for block_width in widths:
            products += _products(pixels, KERNEL, channels, block_width)
            channels = block_width
        skips[stride] = channels
        pixels, stride = pixels // 4, stride * 2
    products += _products(pixels, config.feature_kernel, channels, config.feature_width)
    products += _products(pixels, 1, config.feature_width, 1)
    products += _decoder_products(config, height * width, skips)
    products += _decision_products(config, height // STRIDE, width // STRIDE)
    return 2 * products


def _decoder_products(config: NetworkConfig, image_pixels: int, skips: dict[int, int]) -> int:
    if config.mask_stride == STRIDE:
        return 0
    channels = config.decoder_widths[0]
    products = _products(image_pixels // STRIDE**2, 1, config.feature_width, channels)
    for stride, width in zip((4, 2, 1), config.decoder_widths, strict=True):
        if stride < config.mask_stride:
            break
        pixels = image_pixels // stride**2
        products += _products(pixels, DECODER_KERNEL, channels + skips[stride], width)
        channels = width
    return products + _products(image_pixels // config.mask_stride**2, 1, channels, 1)


def _decision_products(config: NetworkConfig, rows: int, columns: int) -> int:
    products, channels = 0, config.feature_width + 1
    for width in config.decision_widths:
        rows, columns = -(-rows // 2), -(-columns // 2)
        products += _products(rows * columns, KERNEL, channels, width)
        channels = width
    return products + (2 * channels + 2) * config.num_classes


def _products(pixels: int, kernel: int, channels: int, width: int) -> int:
    return pixels * kernel**2 * channels * width
