"""A network with an encoder whose weights are as if it had been trained."""

from typing import Any

import numpy as np

from segdec.config import NetworkConfig

HEAD: dict[str, Any] = {
    "preset": "mobilenet",
    "adapter_width": 8,
    "feature_width": 8,
    "decision_widths": (4, 4, 4),
    "decoder_widths": (4, 4, 4),
}


def build_trained(encoder: str, channels: int = 3) -> Any:
    """Builds a network with the finest mask, random weights and measured statistics."""
    import keras

    from segdec.network.layers import all_layers
    from segdec.network.network import build_network

    keras.utils.set_random_seed(5)
    config = NetworkConfig(**HEAD, encoder=encoder, input_channels=channels, mask_stride=1)
    network, random = build_network(config), np.random.default_rng(1)
    for layer in all_layers(network):
        for variable in layer.weights:
            if variable.path.endswith(("gamma", "beta", "bias")):
                variable.assign(random.uniform(0.5, 1.0, variable.shape))
            if type(layer).__name__ == "LayerScale":  # 1e-6 at first, which would hide its block
                variable.assign(random.uniform(0.2, 0.5, variable.shape))
            if layer.name == "mask_correction":  # zero at first, which would hide the decoder
                variable.assign(random.normal(0, 0.3, variable.shape))
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.0
    photographs = np.random.default_rng(2).integers(0, 256, (2, 64, 64, channels))
    network(photographs.astype(np.float32), training=True)
    return network


def check_served_layers(served: Any) -> None:
    """Checks that folding has replaced what engines or int8 support badly."""
    kinds = {type(layer).__name__ for layer in served.backbone.layers}
    assert not kinds & {"BatchNormalization", "ReplicaBatchNormalization", "LayerScale", "Dense", "Dropout"}
    assert not [one for one in served.backbone.layers if getattr(one, "groups", 1) > 1]
