"""Checks that an OpenVINO model has only expected content before OpenVINO loads it.

OpenVINO detects formats by content: a file in another format may name further files to open. Therefore the
XML is parsed here first, and everything that an export does not write is rejected.
"""

import re
from pathlib import Path
from xml.parsers import expat

from segdec.engines.unexpected_content import unexpected_content

MODEL, WEIGHTS = "model.xml", "model.bin"
KERNEL = re.compile(r"[A-Za-z0-9_]+\.npy")
"""Name of a layer's kernel file."""

BEGINNING = b'<?xml version="1.0"?>\n<net '
"""As OpenVINO writes it in UTF-8. It excludes entity declarations."""

OPERATIONS = {
    "opset1": "Add AvgPool Clamp Concat Const Convert ConvertLike Convolution Divide Exp FakeQuantize Gather "
    "GroupConvolution Less Log LogicalAnd MatMul Maximum Minimum Multiply NotEqual Pad Parameter Power ReLU "
    "ReduceMax ReduceMean ReduceSum Reshape Result Mod Select Sigmoid Split SquaredDifference Squeeze "
    "StridedSlice Subtract Transpose Unsqueeze",
    "opset2": "LogicalXor",
    "opset3": "ShapeOf",
    "opset4": "HSwish Range SoftPlus Swish",
    "opset5": "HSigmoid LogSoftmax",
    "opset6": "MVN",
    "opset7": "Gelu",
    "opset8": "Gather MaxPool Slice Softmax",
    "opset11": "Interpolate",
    "opset13": "ScaledDotProductAttention",
}
"""Version → operations of the networks of all presets and encoders. Extensions have no `opset`."""

_OPERATIONS = frozenset((kind, version) for version, kinds in OPERATIONS.items() for kind in kinds.split())


def check_openvino_model(folder: Path) -> None:
    """Rejects a model in `folder` with unexpected content; it must not change until it is loaded.

    Raises:
        ArtifactError: If there is a file or an operation that no export writes.
        OSError: If a file cannot be read.
        ValueError: If the model is damaged.
    """
    for path in sorted(folder.iterdir()):
        if path.name not in (MODEL, WEIGHTS) and not KERNEL.fullmatch(path.name):
            raise unexpected_content(folder, f"{path.name!r}", f"{MODEL}, {WEIGHTS}, LAYER.npy for kernels")
    path = folder / MODEL
    text = path.read_bytes()
    if not text.startswith(BEGINNING):
        raise unexpected_content(path, "another format than OpenVINO's", repr(BEGINNING.decode()))

    def check_element(name: str, attributes: dict[str, str]) -> None:
        kind, version = attributes.get("type", ""), attributes.get("version", "")
        if name == "layer" and (kind, version) not in _OPERATIONS:
            allowed = "; ".join(f"{version}: {kinds}" for version, kinds in OPERATIONS.items())
            raise unexpected_content(path, f"the operation {kind!r} of {version or 'no opset'!r}", allowed)

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = check_element
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ValueError(f"{path.name} is damaged: {error}") from error
