"""Hostile OpenVINO models, which would run code or exhaust the memory."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from segdec.engines.openvino import OpenVINOEngine
from segdec.errors import ArtifactError


@pytest.fixture
def model(exported: Path, tmp_path: Path) -> Path:
    """The files of the engine, for a test to change."""
    return Path(shutil.copytree(exported / "openvino", tmp_path / "openvino"))


def refusal(folder: Path) -> str:
    with pytest.raises(ArtifactError) as caught:
        OpenVINOEngine.load(folder)
    return str(caught.value)


BODY = """<body><layers><layer id="0" name="x" type="Assign" version="opset6"/></layers></body>"""

TEXTS = {
    "custom operation": ('type="Sigmoid" version="opset1"', 'type="Shell" version="opset1"', "'Shell'"),
    "extension": ('type="Sigmoid" version="opset1"', 'type="Sigmoid" version="extension"', "of 'extension'"),
    "other version": ('type="Sigmoid" version="opset1"', 'type="Sigmoid" version="opset99"', "'opset99'"),
    "no type": ('type="Sigmoid" version="opset1"', "", "''"),
    "loop": ("<layers>", f"<layers>{BODY}", "the operation 'Assign' of 'opset6'"),
    "encoding": ('<?xml version="1.0"?>', '<?xml version="1.0" encoding="UTF-16"?>', "another format"),
    "declaration": ("<layers>", '<!DOCTYPE net [<!ENTITY a "a">]><layers>', "damaged"),
    "damaged": ("</layers>", "</layer>", "damaged"),
    "kernel elsewhere": ("spectra_features", "spectra_../../secret", "the kernel file '../../secret.npy'"),
    "kernel missing": ("spectra_features", "spectra_other", "other.npy"),
}


@pytest.mark.parametrize(("old", "new", "words"), TEXTS.values(), ids=TEXTS)
def test_text_that_no_export_writes_is_rejected(old: str, new: str, words: str, model: Path) -> None:
    text = (model / "model.xml").read_text()
    assert old in text
    (model / "model.xml").write_text(text.replace(old, new))
    assert words in refusal(model)


@pytest.mark.parametrize("content", [b"", b"\x08\x07ONNX", b'\xef\xbb\xbf<?xml version="1.0"?>\n<net '])
def test_model_of_another_format_is_rejected(content: bytes, model: Path) -> None:
    (model / "model.xml").write_bytes(content)
    assert "another format" in refusal(model)


@pytest.mark.parametrize("name", ["extension.so", "model.onnx", "a b.npy"])
def test_file_that_no_export_writes_is_rejected(name: str, model: Path) -> None:
    (model / name).write_bytes(b"")
    assert f"has '{name}'" in refusal(model)


def objects(path: Path) -> None:
    np.save(path, np.array([print], dtype=object), allow_pickle=True)


def endless(path: Path) -> None:
    """A terabyte, by its header."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (2**19, 2**19, 1, 1)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)


def oblong(path: Path) -> None:
    """A kernel whose spectrum would be a hundred thousand times larger."""
    np.save(path, np.zeros((1, 99_999, 1, 1), np.float32))


@pytest.mark.parametrize("write", [objects, endless, oblong], ids=lambda one: one.__name__)
def test_invalid_kernel_file_is_rejected(write: Callable[[Path], None], model: Path) -> None:
    write(model / "features.npy")
    assert "cannot load the model in" in refusal(model)
