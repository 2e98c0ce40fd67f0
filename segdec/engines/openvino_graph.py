"""What a model of OpenVINO may hold before OpenVINO sees it: arithmetic on photographs and weights.

OpenVINO opens whatever it can read, by its content: a file that is no model of its own may be one of another
format, which names further files. So the text is read here first, without loading it, and whatever an export
does not write is refused.
"""

import re
from pathlib import Path
from xml.parsers import expat

from segdec.engines.unexpected_content import unexpected_content

MODEL, WEIGHTS = "model.xml", "model.bin"
KERNEL = re.compile(r"[A-Za-z0-9_]+\.npy")
"""Name of the file that holds the kernel of a layer."""

BEGINNING = b'<?xml version="1.0"?>\n<net '
"""As OpenVINO writes it, in UTF-8. It leaves no room for declarations, which could stand for anything."""

OPERATIONS = {
    "opset1": "Add AvgPool Clamp Concat Const Convert ConvertLike Convolution Divide FakeQuantize Gather "
    "GroupConvolution Less LogicalAnd MatMul Maximum Multiply NotEqual Pad Parameter Power ReLU ReduceMax "
    "ReduceMean ReduceSum Reshape Result Mod Select Sigmoid Split SquaredDifference Squeeze StridedSlice "
    "Subtract Transpose Unsqueeze",
    "opset2": "LogicalXor",
    "opset3": "ShapeOf",
    "opset4": "HSwish Range Swish",
    "opset5": "HSigmoid",
    "opset6": "MVN",
    "opset7": "Gelu",
    "opset8": "Gather MaxPool Slice",
}
"""Version → operations that the networks of every preset and every encoder are computed with.

An extension has no `opset`."""

_OPERATIONS = frozenset((kind, version) for version, kinds in OPERATIONS.items() for kind in kinds.split())


def check_openvino_model(folder: Path) -> None:
    """Refuses a model that holds more than an export writes. Loads nothing.

    Args:
        folder: Of the model; it must not change until it is loaded, see `segdec.artifact`.

    Raises:
        ArtifactError: If there is a file or an operation that no export writes.
        OSError: If a file cannot be read.
        ValueError: If the model is damaged.
    """
    for path in sorted(folder.iterdir()):
        if path.name not in (MODEL, WEIGHTS) and not KERNEL.fullmatch(path.name):
            raise unexpected_content(
                folder, f"{path.name!r}", f"{MODEL}, {WEIGHTS}, and LAYER.npy for kernels"
            )
    path = folder / MODEL
    text = path.read_bytes()
    if not text.startswith(BEGINNING):
        raise unexpected_content(path, "another beginning than a model of OpenVINO", repr(BEGINNING.decode()))
    _check_text(path, text)


def _check_text(path: Path, text: bytes) -> None:
    """Goes through the elements; an operation is a `layer`, however deep it lies."""

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
