"""Small ONNX files with the inputs and outputs of SAM 2.1 as samexporter writes them, to test their callers.

The features are means of the normalised photograph. Mask `k` of the decoder is where the photograph is
brighter than the mean of ImageNet and a click on a defect is nearer than `RADII[k]`, but no other click is.
Its predicted IoU is `SCORES[k]`. Without a click on a defect, it is everywhere else.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

SIDE, STRIDE = 64, 4
"""Side of the encoder's input, and its pixels for one of a mask."""
RADII, SCORES = (24.0, 12.0, 4.0), (0.3, 0.8, 0.5)
"""Radii are px of the encoder's input."""
BEST_RADIUS = RADII[SCORES.index(max(SCORES))]
FAR = 1e6
SHAPES = {
    "image": [1, 3, SIDE, SIDE],
    "high_res_feats_0": [1, 3, 16, 16],
    "high_res_feats_1": [1, 3, 8, 8],
    "image_embed": [1, 3, 4, 4],
    "point_coords": ["num_labels", "num_points", 2],
    "point_labels": ["num_labels", "num_points"],
    "mask_input": ["num_labels", 1, 16, 16],
    "has_mask_input": ["num_labels"],
    "masks": [1, 3, 16, 16],
    "iou_predictions": [1, 3],
}
FEATURES = {"high_res_feats_0": 4, "high_res_feats_1": 8, "image_embed": 16}
PROMPTS = ("point_coords", "point_labels", "mask_input", "has_mask_input")


def write_sam(folder: Path, **changes: Any) -> Path:
    """Writes `tiny.encoder.onnx` and `tiny.decoder.onnx` into a new folder, and returns it.

    `changes` are other shapes of single inputs or outputs. Skips the test without onnx or onnxruntime.
    """
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    shapes = {**SHAPES, **changes}
    folder.mkdir()
    encoder = _encoder_nodes(onnx)
    _save(onnx, folder / "tiny.encoder.onnx", encoder, (["image"], list(FEATURES)), shapes, {})
    nodes, constants = _decoder_nodes(onnx)
    names = ["image_embed", "high_res_feats_0", "high_res_feats_1", *PROMPTS], ["masks", "iou_predictions"]
    _save(onnx, folder / "tiny.decoder.onnx", nodes, names, shapes, constants)
    return folder


def rename(file: Path, old: str, new: str) -> None:
    """Renames an input or output of an ONNX file."""
    import onnx

    graph = onnx.load(file)
    (value,) = (one for one in (*graph.graph.input, *graph.graph.output) if one.name == old)
    value.name = new
    for node in graph.graph.node:
        for names in (node.input, node.output):
            names[:] = [new if name == old else name for name in names]
    onnx.save(graph, file)


def iou(found: Any, expected: Any) -> float:
    return float(np.count_nonzero(found & expected) / np.count_nonzero(found | expected))


def draw_clicks(size: tuple[int, int], clicks: list[tuple[int, int, bool]], radius: float) -> Any:
    """Returns the mask that clicks (x, y, is defect) describe on a bright photograph, bool [H, W]."""
    rows, columns = np.mgrid[: size[0], : size[1]]

    def is_near(x: int, y: int) -> Any:
        across, down = (columns - x) * SIDE / size[1], (rows - y) * SIDE / size[0]
        return np.hypot(across, down) < radius

    mask = np.any([is_near(x, y) for x, y, is_defect in clicks if is_defect], axis=0)
    for x, y, is_defect in clicks:
        mask &= is_defect | ~is_near(x, y)
    return mask


def _encoder_nodes(onnx: Any) -> list[Any]:
    node = onnx.helper.make_node
    return [
        node("AveragePool", ["image"], [name], kernel_shape=[step, step], strides=[step, step])
        for name, step in FEATURES.items()
    ]


def _decoder_nodes(onnx: Any) -> tuple[list[Any], dict[str, Any]]:
    """Nodes and constants. The decoder of SAM adds 0.5 to the points, so this one does."""
    middles = (np.arange(SIDE // STRIDE, dtype=np.float32) + 0.5) * STRIDE
    constants = {
        "across": np.broadcast_to(middles[None, None, None], (1, 1, 16, 16)),
        "down": np.broadcast_to(middles[None, None, :, None], (1, 1, 16, 16)),
        "half": np.float32(0.5),
        "far": np.float32(-FAR),
        "is_other": np.float32(0),
        "is_defect": np.float32(1),
        "scores": np.array([SCORES], np.float32),
        "x": np.array([0]),
        "y": np.array([1]),
        "last": np.array([3]),
        "sides": np.array([2, 3]),
        "steep": np.float32(FAR),
    }
    lines = [
        ("Add", "point_coords half", "points"),
        ("Gather", "points x", "columns", {"axis": 2}),
        ("Gather", "points y", "rows", {"axis": 2}),
        ("Unsqueeze", "columns last", "points_x"),
        ("Unsqueeze", "rows last", "points_y"),
        ("Sub", "across points_x", "distances_x"),
        ("Sub", "down points_y", "distances_y"),
        ("Mul", "distances_x distances_x", "squares_x"),
        ("Mul", "distances_y distances_y", "squares_y"),
        ("Add", "squares_x squares_y", "squares"),
        ("Sqrt", "squares", "distances"),
        ("Unsqueeze", "point_labels sides", "labels"),
        ("Equal", "labels is_defect", "on_defects"),
        ("Equal", "labels is_other", "on_others"),
        ("ReduceMax", "point_labels", "label", {"axes": [1]}),
        ("Unsqueeze", "label sides", "largest_label"),
        ("Equal", "largest_label is_defect", "has_defects"),
        ("ReduceMean", "high_res_feats_0", "brightness", {"axes": [1]}),
        ("Mul", "brightness steep", "bright"),
        ("Mul", "has_mask_input far", "unused_mask"),
    ]
    for number, radius in enumerate(RADII):
        constants[f"radius_{number}"] = np.float32(radius)
        lines += [
            ("Sub", f"radius_{number} distances", f"near_{number}"),
            ("Where", f"on_defects near_{number} far", f"near_defects_{number}"),
            ("Where", f"on_others near_{number} far", f"near_others_{number}"),
            ("ReduceMax", f"near_defects_{number}", f"nearest_{number}", {"axes": [1]}),
            ("Where", f"has_defects nearest_{number} steep", f"inside_{number}"),
            ("ReduceMax", f"near_others_{number}", f"outside_{number}", {"axes": [1]}),
            ("Neg", f"outside_{number}", f"allowed_{number}"),
            ("Min", f"inside_{number} allowed_{number} bright", f"mask_{number}"),
        ]
    masks = " ".join(f"mask_{number}" for number in range(len(RADII)))
    lines += [
        ("Concat", masks, "all_masks", {"axis": 1}),
        ("Add", "all_masks unused_mask", "masks"),
        ("Identity", "scores", "iou_predictions"),
    ]
    nodes = [
        onnx.helper.make_node(kind, inputs.split(), [output], **(more[0] if more else {}))
        for kind, inputs, output, *more in lines
    ]
    return nodes, constants


def _save(onnx: Any, file: Path, nodes: list[Any], names: Any, shapes: Any, constants: Any) -> None:
    inputs, outputs = (
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shapes[name]) for name in side]
        for side in names
    )
    tensors = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = onnx.helper.make_graph(nodes, file.stem, inputs, outputs, tensors)
    opset = onnx.helper.make_opsetid("", 17)  # as samexporter
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, file)
