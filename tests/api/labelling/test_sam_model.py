"""Which files of SAM are accepted, and what the encoder and the decoder get."""

import sys

import numpy as np
import pytest

from api.labelling.clicks import Click
from api.labelling.sam_model import DEVIATION, MEAN, SamModel
from segdec.errors import ConfigError, MissingExtraError
from tests.api.labelling.sam_graphs import SIDE, rename, write_sam

ENCODER, DECODER = "tiny.encoder.onnx", "tiny.decoder.onnx"


@pytest.fixture
def folder(tmp_path):
    return write_sam(tmp_path / "sam")


def refusal(folder):
    with pytest.raises(ConfigError) as caught:
        SamModel(folder, 1)
    message = str(caught.value)
    assert "samexporter, see docs/labelling.md" in message
    return message


@pytest.mark.parametrize("shape", [(48, 96, 3), (SIDE, SIDE, 3), (200, 100, 3), (48, 96, 1), (48, 96)])
def test_the_encoder_gets_normalised_colours_in_the_order_red_green_blue(folder, shape):
    colour = np.uint8((255, 51, 102))
    image = np.full(shape, colour if shape[2:] == (3,) else 51, np.uint8)
    found = SamModel(folder, 1).encode(image)["image_embed"]
    shown = np.array((1.0, 0.2, 0.4)) if shape[2:] == (3,) else np.full(3, 0.2)
    assert found.shape == (1, 3, 4, 4)
    np.testing.assert_allclose(found[0, :, 1, 2], (shown - MEAN) / DEVIATION, atol=1e-5)


def test_the_encoder_gets_rows_as_rows(folder):
    image = np.zeros((120, 90), np.uint8)
    image[:30, 45:] = 255
    model = SamModel(folder, 1)
    bright = model.encode(image)["high_res_feats_0"][0, 0] > 0
    expected = np.zeros((16, 16), bool)
    expected[:4, 8:] = True
    np.testing.assert_array_equal(bright, expected)
    inside = model.decode(model.encode(image), [Click(60, 20, True)], (120, 90)) > 0
    assert inside.any()
    assert not (inside & ~expected).any()


def test_a_folder_without_one_encoder_and_one_decoder_is_refused(folder):
    assert "*encoder.onnx: none. Expected one" in refusal(folder / "none")
    (folder / "small.decoder.onnx").touch()
    assert "*decoder.onnx: small.decoder.onnx, tiny.decoder.onnx. Expected one" in refusal(folder)


@pytest.mark.parametrize("content", [b"", b"not ONNX", b"\x08\x08"])
def test_a_file_that_is_not_onnx_is_refused(folder, content):
    (folder / DECODER).write_bytes(content)
    message = refusal(folder)
    assert message.startswith(f"'{folder / DECODER}' ")
    assert "Expected" in message


def test_files_that_are_exchanged_are_refused(folder):
    (folder / DECODER).rename(folder / "other")
    (folder / ENCODER).rename(folder / DECODER)
    (folder / "other").rename(folder / ENCODER)
    message = refusal(folder)
    assert f"{ENCODER}' has the inputs image_embed tensor(float) 1 × 3 × 4 × 4, high_res_feats_0" in message
    assert "Expected image tensor(float) 1 × 3 × H × W." in message


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        (ENCODER, "image", "pixel_values", "pixel_values tensor(float) 1 × 3 × 64 × 64. Expected image"),
        (ENCODER, "image_embed", "image_embeddings", "image_embeddings tensor(float) 1 × 3 × 4 × 4. Exp"),
        (DECODER, "point_coords", "input_points", "input_points tensor(float) num_labels × num_points × 2"),
        (DECODER, "masks", "pred_masks", "outputs pred_masks tensor(float) 1 × 3 × 16 × 16, iou"),
    ],
)
def test_other_names_are_refused(folder, file, old, new, words):
    rename(folder / file, old, new)
    assert words in refusal(folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image": [1, 1, SIDE, SIDE]}, "image tensor(float) 1 × 1 × 64 × 64. Expected image"),
        ({"mask_input": [1, 1, 1, 16, 16]}, "mask_input tensor(float) 1 × 1 × 1 × 16 × 16, has_mask_input"),
        ({"point_coords": ["num_labels", 5, 2], "point_labels": ["num_labels", 5]}, "do not work together"),
        ({"image_embed": [1, 3, 8, 8]}, "do not work together"),
    ],
)
def test_other_shapes_are_refused(tmp_path, changes, words):
    assert words in refusal(write_sam(tmp_path / "sam", **changes))


def test_a_further_input_is_refused(folder):
    import onnx

    graph = onnx.load(folder / DECODER)
    size = onnx.helper.make_tensor_value_info("orig_im_size", onnx.TensorProto.FLOAT, [2])
    graph.graph.input.append(size)
    onnx.save(graph, folder / DECODER)
    assert "num_labels, orig_im_size tensor(float) 2. Expected" in refusal(folder)


def test_other_types_are_refused(folder):
    import onnx

    graph = onnx.load(folder / ENCODER)
    for value in (*graph.graph.input, *graph.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    onnx.save(graph, folder / ENCODER)
    assert "image tensor(float16) 1 × 3 × 64 × 64. Expected image tensor(float)" in refusal(folder)


def test_the_error_without_onnxruntime_names_the_group(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for name in (ENCODER, DECODER):
        (tmp_path / name).touch()
    with pytest.raises(MissingExtraError, match=r"'onnxruntime' is not installed.*--group sam"):
        SamModel(tmp_path, 1)
