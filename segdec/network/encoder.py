"""A pretrained network as encoder: smoothed features of several strides."""

import warnings
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import keras
from keras import layers, ops

from segdec.config import SMOOTHING, STRIDE, NetworkConfig
from segdec.encoders import ENCODER_STRIDE, ENCODERS, JOINED_STRIDES, Encoder
from segdec.network.convolution import normalized_convolutions
from segdec.network.efficientnet_lite import build_efficientnet_lite
from segdec.network.layers import DEFAULT_POLICY, ComputePolicy, ReplicaBatchNormalization
from segdec.network.served_layers import serve_layer
from segdec.network.vision_transformer import build_vision_transformer

BUILDERS: dict[str, Callable[..., keras.Model]] = {
    "EfficientNetLite": build_efficientnet_lite,
    "VisionTransformer": build_vision_transformer,
}
"""Networks that `keras.applications` lacks, up to stride 16."""

BACKBONE, PADDED = "backbone", "padded"
"""Names, inside the encoder, of the pretrained network and of its input."""


def build_encoder(config: NetworkConfig, policy: ComputePolicy = DEFAULT_POLICY) -> keras.Model:
    """Builds a model: image [B, H, W, C], 0…255 → features by name, for the head and for the decoder.

    `joined_4` (averaged over 2 × 2 px) and `joined_8` are [B, H/8, W/8, ·], `joined_16` [B, ⌈H/16⌉, ⌈W/16⌉,
    ·]; all are smoothed over 3 × 3 px. `skip_s` [B, H/s, W/s, ·] are the unchanged features of the
    strides s = 4, 2, 1 that the mask needs, or the image if the encoder has none of that stride.
    """
    row, exact = ENCODERS[config.encoder], keras.config.floatx()
    image = keras.Input((None, None, config.input_channels), name="image")
    pixels = EncoderInput(**_expected(row, config, policy), dtype=exact, name="pixels")(image)
    skip_pixels = pixels
    if policy.folded:
        skip_pixels = EncoderInput(**_expected(row, config, DEFAULT_POLICY), dtype=exact, name="shown")(image)
    padded = PadToMultiple(ENCODER_STRIDE, dtype=exact, name=PADDED)(pixels)
    skips = [stride for stride in (4, 2, 1) if config.mask_stride <= stride < STRIDE]
    strides = sorted({*JOINED_STRIDES, *(set(skips) & row.layers.keys())})
    backbone = _backbone(row, strides, padded.shape[-1], policy)
    features = dict(zip(strides, backbone(padded), strict=True))
    outputs = {f"joined_{one}": _smoothed(features[one], one, pixels, policy) for one in JOINED_STRIDES}
    for stride in skips:
        name, dtype = f"skip_{stride}", policy.dtype
        if stride in features:
            outputs[name] = CropToStride(stride, dtype=dtype, name=name)([features[stride], skip_pixels])
        else:
            outputs[name] = layers.AveragePooling2D(stride, dtype=dtype, name=name)(skip_pixels)
    return keras.Model(image, outputs, name="encoder")


def _expected(row: Encoder, config: NetworkConfig, policy: ComputePolicy) -> dict[str, Any]:
    """Returns the settings of the layer `pixels`. If folded, the first kernel includes its linear part.

    The mean cannot be folded, because it must be subtracted before zero padding. A grey image with equal
    means keeps one channel.
    """
    if not policy.folded:
        return {"mean": row.mean, "deviation": row.deviation, "blue_first": row.blue_first}
    once = config.input_channels == 1 and len(set(row.mean)) == 1
    return {"mean": row.mean[:1] if once else row.mean}


def load_application(row: Encoder, weights: str | None = None) -> keras.Model:
    """Builds the whole network of `keras.applications` without its top, or one of `BUILDERS`.

    `weights` are those that `keras.applications` loads.
    """
    if row.application in BUILDERS:
        return BUILDERS[row.application](**row.arguments)
    build = getattr(keras.applications, row.application)
    with warnings.catch_warnings(action="ignore"):  # weights trained on 224 × 224 px fit any size
        return build(include_top=False, weights=weights, input_shape=(None, None, 3), **row.arguments)


def _smoothed(features: Any, stride: int, pixels: Any, policy: ComputePolicy) -> Any:
    dtype = policy.dtype
    if stride < STRIDE:
        features = layers.AveragePooling2D(STRIDE // stride, dtype=dtype, name=f"pooled_{stride}")(features)
    smooth = partial(layers.AveragePooling2D, SMOOTHING, 1, padding="same", dtype=dtype)
    if stride == ENCODER_STRIDE:  # padding is always less than one pixel
        return smooth(name=f"joined_{stride}")(features)
    crop = CropToStride(STRIDE, dtype=dtype, name=f"joined_{stride}")
    return crop([smooth(name=f"smoothed_{stride}")(features), pixels])


def _backbone(row: Encoder, strides: list[int], channels: int, policy: ComputePolicy) -> keras.Model:
    """Builds the application up to its coarsest used features, with layers that support replicas.

    If folded, it uses the layers for serving, with the given number of input channels.
    """
    whole = load_application(row)
    cut = keras.Model(whole.input, [whole.get_layer(row.layers[stride]).output for stride in strides])
    folded = normalized_convolutions(cut) if policy.folded else {}
    places, named = {layer.name: place for place, layer in enumerate(cut.layers)}, set(row.layers.values())

    def clone(layer: Any) -> Any:
        if not isinstance(layer, keras.layers.Layer):  # an operation without weights and settings
            return layer
        if isinstance(layer, keras.Sequential):
            return [clone(one) for one in layer.layers]
        kind, settings = type(layer), layer.get_config()
        if policy.dtype is not None:
            settings["dtype"] = policy.dtype
        if not layer.weights and layer.name in places.keys() - named:
            settings["name"] = f"layer_{places[layer.name]}"  # the default one depends on the process
        if layer.name in folded:
            settings["use_bias"] = True
        if kind is layers.BatchNormalization:
            kind, settings["synchronized"] = ReplicaBatchNormalization, policy.synchronized
        return serve_layer(kind, settings) if policy.folded else kind.from_config(settings)

    def call(layer: Any, x: Any, *rest: Any, **named: Any) -> Any:
        if isinstance(layer, list):  # a Sequential model, which is flattened
            return reduce(lambda y, one: call(one, y), layer, x)
        gone = layer.name in folded.values() or isinstance(layer, layers.Dropout)
        return x if gone else layer(x, *rest, **named)

    image = keras.Input((None, None, channels), name="image")
    model = keras.models.clone_model(cut, image, clone_function=clone, call_function=call)
    return keras.Model(model.input, model.output, name=BACKBONE)


@keras.saving.register_keras_serializable(package="segdec")
class EncoderInput(keras.layers.Layer):
    """Converts pixels [B, H, W, 1 or 3] to the values [B, H, W, 3] that the weights of an encoder expect.

    Args:
        mean: Mean of red, green and blue, 0…255, that is subtracted. With one number the output has one
            channel, otherwise a grey channel is copied to all three.
        deviation: Divisor of the difference, if given.
        blue_first: Whether the output order is blue, green, red.
    """

    def __init__(
        self,
        mean: tuple[float, ...],
        deviation: tuple[float, ...] = (),
        *,
        blue_first: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.mean, self.deviation, self.blue_first = tuple(mean), tuple(deviation), blue_first

    def call(self, inputs: Any) -> Any:
        x = ops.cast(inputs, self.compute_dtype)
        x = x - ops.convert_to_tensor(self.mean, x.dtype)  # a grey channel is broadcast to three
        if self.deviation:
            x = x * ops.convert_to_tensor([1.0 / one for one in self.deviation], x.dtype)
        return ops.take(x, [2, 1, 0], axis=-1) if self.blue_first else x

    def get_config(self) -> dict[str, Any]:
        settings = {"mean": self.mean, "deviation": self.deviation, "blue_first": self.blue_first}
        return {**super().get_config(), **settings}


@keras.saving.register_keras_serializable(package="segdec")
class PadToMultiple(keras.layers.Layer):
    """Pads images [B, H, W, C] with zeros on the right and at the bottom to multiples of `multiple`.

    Zero is the mean of an encoder's pixels, and the padding of its convolutions.
    """

    def __init__(self, multiple: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.multiple = multiple

    def call(self, inputs: Any) -> Any:
        sides, multiple = ops.shape(inputs)[1:3], self.multiple
        more = [[0, (side + multiple - 1) // multiple * multiple - side] for side in sides]
        return ops.pad(inputs, [[0, 0], *more, [0, 0]])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "multiple": self.multiple}


@keras.saving.register_keras_serializable(package="segdec")
class CropToStride(keras.layers.Layer):
    """Crops features [B, h, w, C] of a padded image [B, H, W, ·] to [B, ⌈H / stride⌉, ⌈W / stride⌉, C]."""

    def __init__(self, stride: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stride = stride

    def call(self, inputs: list[Any]) -> Any:
        features, image = inputs
        batch, _, _, channels = ops.shape(features)
        rows, columns = ((side + self.stride - 1) // self.stride for side in ops.shape(image)[1:3])
        return ops.slice(features, (0, 0, 0, 0), (batch, rows, columns, channels))

    def compute_output_shape(self, input_shape: list[tuple[int | None, ...]]) -> tuple[int | None, ...]:
        (batch, _, _, channels), (_, *sides, _) = input_shape
        return (batch, *(side and -(-side // self.stride) for side in sides), channels)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "stride": self.stride}
