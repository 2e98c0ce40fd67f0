"""The state dict of DINOv2 gives the results of the published description, computed with NumPy."""

import hashlib
import math
import re
from dataclasses import replace

import cv2
import numpy as np
import pytest

from segdec.encoders import ENCODERS
from segdec.errors import ConfigError
from tests.torch_files import encode
from training.config import ExperimentConfig

keras = pytest.importorskip("keras")

from training.optimization.pretrained import build_initial_network, load_pretrained  # noqa: E402
from training.optimization.transformer_weights import state_dict_shapes  # noqa: E402

HEADS = 2
ARGUMENTS = {"width": 32, "depth": 3, "heads": HEADS, "grid": 5}


@pytest.fixture(scope="module")
def tensors():
    random = np.random.default_rng(3)
    shapes = state_dict_shapes(**ARGUMENTS)
    return {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def row(monkeypatch, tiny_transformer):
    """An encoder of three blocks, so that the map of each stride is of another one."""
    row = replace(ENCODERS[tiny_transformer], arguments=ARGUMENTS)
    monkeypatch.setitem(ENCODERS, tiny_transformer, row)
    return row


def configure(weights, **settings):
    network = {"encoder": "tiny_transformer", "preset": "mobilenet", "input_channels": 3}
    return ExperimentConfig(
        network=network, stages={"joint": {"steps": 1}}, encoder_weights=str(weights), **settings
    )


# === The description ===


def normalize(x, scale, offset):
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + 1e-6) * scale + offset


def attend(x):
    """Attention [N, 3 · C] → [N, C], one query after the other."""
    queries, keys, values = (part.reshape(len(x), HEADS, -1) for part in np.split(x, 3, axis=1))
    result = np.zeros_like(values)
    for token, head in np.ndindex(len(x), HEADS):
        weights = np.exp(keys[:, head] @ queries[token, head] / math.sqrt(values.shape[-1]))
        result[token, head] = weights @ values[:, head] / weights.sum()
    return result.reshape(len(x), -1)


def cubic(grid, height, width):
    """Resizes [g, g, C] as PyTorch does with `bicubic` and `align_corners=False`."""

    def kernel(x):
        x, a = abs(x), -0.75
        if x <= 1:
            return (a + 2) * x**3 - (a + 3) * x**2 + 1
        return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0

    def resize(values, size):
        result = np.zeros((size, *values.shape[1:]))
        for place in range(size):
            centre = (place + 0.5) * len(values) / size - 0.5
            for near in range(math.floor(centre) - 1, math.floor(centre) + 3):
                result[place] += kernel(centre - near) * values[min(max(near, 0), len(values) - 1)]
        return result

    return resize(resize(grid, height).swapaxes(0, 1), width).swapaxes(0, 1)


def transform(tensors, image):
    """Returns the patch maps [h, w, C] after each block for an image [H, W, 3]."""
    weights = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    height, width = image.shape[0] // 16, image.shape[1] // 16
    resized = cv2.resize(image, (14 * width, 14 * height), interpolation=cv2.INTER_LINEAR)
    cells = resized.reshape(height, 14, width, 14, 3)
    patches = np.einsum("hawbc,dcab->hwd", cells, weights["patch_embed.proj.weight"])
    patches += weights["patch_embed.proj.bias"]
    positions = weights["pos_embed"][0]
    patches += cubic(positions[1:].reshape(5, 5, -1), height, width)
    x = np.concatenate([weights["cls_token"][0] + positions[:1], patches.reshape(height * width, -1)])
    maps = []

    def normalized(x, name):
        return normalize(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def dense(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    for number in range(3):
        block = f"blocks.{number}"
        y = attend(dense(normalized(x, f"{block}.norm1"), f"{block}.attn.qkv"))
        x = x + weights[f"{block}.ls1.gamma"] * dense(y, f"{block}.attn.proj")
        y = dense(normalized(x, f"{block}.norm2"), f"{block}.mlp.fc1")
        y = 0.5 * y * (1 + np.vectorize(math.erf)(y / math.sqrt(2)))
        x = x + weights[f"{block}.ls2.gamma"] * dense(y, f"{block}.mlp.fc2")
        maps.append(x)
    maps[-1] = normalized(x, "norm")
    return [tokens[1:].reshape(height, width, -1) for tokens in maps]


@pytest.mark.slow
@pytest.mark.parametrize("archive", [True, False])
def test_a_state_dict_gives_the_maps_of_the_description(row, tensors, tmp_path, archive):
    path = tmp_path / "small.pth"
    path.write_bytes(encode(tensors, archive=archive))
    config = configure(path)
    loaded = load_pretrained(config)
    assert loaded.origin.weights == "small.pth"
    assert loaded.origin.licence is None
    application = loaded.application
    outputs = [application.get_layer(f"patch_map_{stride}").output for stride in row.layers]
    images = np.random.default_rng(1).normal(size=(2, 48, 80, 3)).astype(np.float32)
    features = keras.Model(application.input, outputs)(images, training=False)
    for place, image in enumerate(images.astype(np.float64)):
        for one, expected in zip(features, transform(tensors, image), strict=True):
            np.testing.assert_allclose(one[place], expected, rtol=0, atol=2e-5 * np.abs(expected).max())
    backbone = build_initial_network(config, loaded).backbone
    pairs = zip(backbone(images, training=False), application(images, training=False), strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


# === The file ===


def changed(tensors, **others):
    """The tensors with others in their place; None leaves one out."""
    return {name: one for name, one in {**tensors, **others}.items() if one is not None}


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        (
            {"register_tokens": np.zeros((1, 4, 32), np.float32)},
            "it contains register_tokens [1, 4, 32], which this network does not have",
        ),
        ({"norm.bias": np.zeros(48, np.float32)}, "norm.bias is [48], expected [32]"),
        ({"blocks.1.ls1.gamma": None}, "it lacks blocks.1.ls1.gamma [32]"),
        ({"cls_token": np.full((1, 1, 32), np.nan, np.float32)}, "it contains values that are not finite"),
    ],
)
def test_the_file_of_another_network_is_rejected(row, tensors, tmp_path, others, problem):
    path = tmp_path / "small.pth"
    path.write_bytes(encode(changed(tensors, **others), archive=True))
    message = f"encoder_weights = '{path}' does not fit the encoder 'tiny_transformer': {problem}. Expected "
    with pytest.raises(ConfigError, match=re.escape(f"{message}the file {row.weights_file}.")):
        load_pretrained(configure(path))


def test_the_mask_token_is_not_needed(row, tensors, tmp_path):  # noqa: ARG001
    path = tmp_path / "small.pth"
    path.write_bytes(encode(changed(tensors, mask_token=None)))
    assert load_pretrained(configure(path)) is not None


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("small.pth", b"PK", "Not a PyTorch state dict: "),
        ("small.safetensors", b"", "is not a .pth file"),
        ("absent.pth", None, "does not exist"),
    ],
)
def test_what_is_not_a_state_dict_is_rejected(row, tmp_path, name, content, problem):  # noqa: ARG001
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=re.escape(problem)):
        load_pretrained(configure(tmp_path / name))


def test_a_download_is_compared_with_the_published_digest(row, tensors, tmp_path, monkeypatch, capsys):
    source = tmp_path / "published.pth"
    source.write_bytes(encode(tensors, archive=True))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    row = replace(row, url=source.as_uri())
    monkeypatch.setitem(ENCODERS, "tiny_transformer", row)
    with pytest.raises(
        ConfigError, match=r"cannot be downloaded \(file:.* has the SHA-256 \w{64}, expected 0{64}"
    ):
        load_pretrained(configure("imagenet"))
    assert not list((tmp_path / "models").glob("*.pth"))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    monkeypatch.setitem(ENCODERS, "tiny_transformer", replace(row, sha256=digest))
    loaded = load_pretrained(configure("imagenet"))
    assert (loaded.origin.sha256, loaded.origin.licence) == (digest, "Apache-2.0")
    (tmp_path / "models" / row.weights_file).write_bytes(b"other")
    with pytest.raises(ConfigError, match=r"is not the published file .* Remove it to download it again"):
        load_pretrained(configure("imagenet"))
    assert "Downloading" in capsys.readouterr().out


def test_top_trains_the_blocks_after_the_features_of_stride_8(row, tensors, tmp_path):  # noqa: ARG001
    path = tmp_path / "small.pth"
    path.write_bytes(encode(tensors))
    config = configure(path, encoder_trainable="top")
    backbone = build_initial_network(config, load_pretrained(config)).backbone
    trained = {layer.name for layer in backbone.layers if layer.trainable_weights}
    assert {name.split("_")[1] for name in trained if "_" in name} == {"2"}
    assert "norm" in trained
