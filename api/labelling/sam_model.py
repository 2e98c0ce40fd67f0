"""SAM 2 (Ravi et al., SAM 2: Segment Anything in Images and Videos, 2024) from two ONNX files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from api.labelling.clicks import Click
from api.labelling.pixel_features import Floats
from api.labelling.windows import Image
from segdec.errors import ConfigError, MissingExtraError

MEAN = np.array((0.485, 0.456, 0.406), np.float32)
DEVIATION = np.array((0.229, 0.224, 0.225), np.float32)
"""Of the colours of ImageNet, RGB, 0…1."""
SIDE = 1024
"""Height and width of the encoder's input if the file leaves them open, px."""
MASK_STRIDE = 4
"""Pixels of the encoder's input for one of a mask, along each side."""
FEATURES = ("high_res_feats_0", "high_res_feats_1", "image_embed")
ENCODER_INPUTS = {"image": "1 × 3 × H × W"}
ENCODER_OUTPUTS = dict.fromkeys(FEATURES, "1 × C × H × W")
DECODER_INPUTS = ENCODER_OUTPUTS | {
    "point_coords": "B × N × 2",
    "point_labels": "B × N",
    "mask_input": "B × 1 × H × W",
    "has_mask_input": "B",
}
DECODER_OUTPUTS = {"masks": "B × M × H × W", "iou_predictions": "B × M"}
"""Names and shapes of float32 tensors; letters are any size. Further outputs are ignored."""
HOW_TO_EXPORT = "Export SAM 2.1 with samexporter, see docs/labelling.md."
Embedding = Mapping[str, Floats]
"""The features of a photograph by their names."""


class SamModel:
    """The encoder and the decoder of SAM 2 or 2.1, as samexporter writes them. Threads may share it.

    `folder` has one file `*encoder.onnx` and one `*decoder.onnx`; `size` is height and width of the encoder's
    input, px.

    Raises:
        ConfigError: If a file is missing, is not an ONNX file or has other inputs or outputs.
        MissingExtraError: Without onnxruntime.
    """

    def __init__(self, folder: Path, threads: int) -> None:
        encoder, decoder = (_find_file(folder, kind) for kind in ("encoder", "decoder"))
        self._encoder, self._decoder = _open(encoder, threads), _open(decoder, threads)
        _check(encoder, "inputs", self._encoder.get_inputs(), ENCODER_INPUTS)
        _check(encoder, "outputs", self._encoder.get_outputs(), ENCODER_OUTPUTS)
        _check(decoder, "inputs", self._decoder.get_inputs(), DECODER_INPUTS)
        _check(decoder, "outputs", self._decoder.get_outputs(), DECODER_OUTPUTS)
        height, width = (
            side if isinstance(side, int) else SIDE for side in self._encoder.get_inputs()[0].shape[2:]
        )
        self.size = height, width
        try:
            self.decode(self.encode(np.zeros((height, width), np.uint8)), [Click(0, 0, True)], self.size)
        except Exception as error:  # those of onnxruntime have no common base
            raise ConfigError(
                f"The files of SAM in '{folder}' do not work together: {_first_line(error)}. Expected "
                f"encoder and decoder of one model. {HOW_TO_EXPORT}"
            ) from error

    def encode(self, image: Image) -> Embedding:
        """Returns the features of a photograph, uint8 [H, W] or [H, W, 1 or 3] (RGB). Slow."""
        height, width = self.size
        is_reduced = image.shape[0] * image.shape[1] > height * width
        interpolation = cv2.INTER_AREA if is_reduced else cv2.INTER_LINEAR
        resized = cv2.resize(image, (width, height), interpolation=interpolation).reshape(height, width, -1)
        normalised = (resized.astype(np.float32) / 255 - MEAN) / DEVIATION  # grey becomes RGB
        tensor = np.ascontiguousarray(normalised.transpose(2, 0, 1)[None])  # [1, 3, H, W]
        return dict(zip(FEATURES, self._encoder.run(FEATURES, {"image": tensor}), strict=True))

    def decode(self, embedding: Embedding, clicks: Sequence[Click], size: tuple[int, int]) -> Floats:
        """Returns the logits of the likeliest mask, float32 [h, w], above 0 where the defect is.

        They cover the photograph at the resolution of the model: a quarter of that of its input. `size` is
        height and width of the photograph, px.
        """
        scale_y, scale_x = self.size[0] / size[0], self.size[1] / size[1]
        # Middles of pixels. The decoder adds the half pixel itself.
        points = [((one.x + 0.5) * scale_x - 0.5, (one.y + 0.5) * scale_y - 0.5) for one in clicks]
        prompts = {
            "point_coords": np.array([points], np.float32),  # [1, N, 2]
            "point_labels": np.array([[one.is_defect for one in clicks]], np.float32),  # [1, N]
            "mask_input": np.zeros((1, 1, *(side // MASK_STRIDE for side in self.size)), np.float32),
            "has_mask_input": np.zeros(1, np.float32),
        }
        masks, scores = self._decoder.run(list(DECODER_OUTPUTS), {**embedding, **prompts})
        return np.asarray(masks[0][int(np.argmax(scores[0]))], np.float32)


def _find_file(folder: Path, kind: str) -> Path:
    files = sorted(folder.glob(f"*{kind}.onnx"))
    if len(files) != 1:
        names = ", ".join(path.name for path in files) or "none"
        raise ConfigError(
            f"The folder of SAM, '{folder}', has these files *{kind}.onnx: {names}. Expected one. "
            f"{HOW_TO_EXPORT}"
        )
    return files[0]


def _open(file: Path, threads: int) -> Any:
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise MissingExtraError("onnxruntime", group="sam") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the engine needs the cores
    options.enable_cpu_mem_arena = False  # it would keep the memory of the encoder
    options.log_severity_level = 4  # errors are raised
    try:
        return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no common base
        raise ConfigError(
            f"'{file}' cannot be read: {_first_line(error)}. Expected an ONNX file of SAM. {HOW_TO_EXPORT}"
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _check(file: Path, side: str, nodes: Sequence[Any], expected: Mapping[str, str]) -> None:
    """Raises a ConfigError if inputs or outputs have other names, types or shapes."""
    shapes = {node.name: node.shape for node in nodes if node.type == "tensor(float)"}
    fits = all(name in shapes and _fits(shapes[name], shape) for name, shape in expected.items())
    if not fits or (side == "inputs" and len(nodes) != len(expected)):
        arrived = (f"{one.name} {one.type} {_describe_shape(one.shape)}" for one in nodes)
        wanted = (f"{name} tensor(float) {shape}" for name, shape in expected.items())
        raise ConfigError(
            f"'{file}' has the {side} {', '.join(arrived)}. Expected {', '.join(wanted)}. {HOW_TO_EXPORT}"
        )


def _describe_shape(shape: Sequence[Any]) -> str:
    return " × ".join(str(size or "?") for size in shape)


def _fits(shape: Sequence[Any], expected: str) -> bool:
    """Whether a shape, whose sizes may be open, is the expected one."""
    wanted = expected.split(" × ")
    return len(shape) == len(wanted) and all(
        not isinstance(size, int) or not want.isdecimal() or size == int(want)
        for size, want in zip(shape, wanted, strict=True)
    )
