import base64
import itertools
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import InferenceServerException

from api.app import create_app
from api.errors import RequestError
from api.inspecting.protocol_v2.inference_request import parse_inference_request
from api.models.registry import ServedModel
from api.settings import Settings
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.engines import Logits
from segdec.images import decode_image, encode_png
from segdec.predictor import Predictor
from segdec.schemas import ModelIdentity
from tests.api.live_server import served

CLASSES = ("good", "scratch", "spot")
INFER = "/v2/models/part/infer"
LENGTH = "Inference-Header-Content-Length"
OUTPUTS = ["label", "score", "threshold", "review_threshold", "probabilities", "mask"]
PROBLEM_KEYS = {"type", "title", "status", "detail", "code", "values", "request_id", "error"}


class BrightEngine:
    """Its score is the brightest pixel / 255, always for a scratch; its mask has the blocks above 127."""

    batch_pixels = 2**24

    def infer(self, images: np.ndarray) -> Logits:
        count, height, width, _ = images.shape
        blocks = images.reshape(count, height // 8, 8, width // 8, 8, -1).max(axis=(2, 4, 5))
        mask = (blocks[..., None].astype(np.float32) - 127.5) / 4
        score = np.clip(images.reshape(count, -1).max(axis=1) / 255, 1e-9, 1 - 1e-9)
        classes = np.stack([np.log(1 - score), np.log(score), np.full(count, -60.0)], axis=1)
        return Logits(mask, classes.astype(np.float32))


def photograph(brightness: int, height: int = 24, width: int = 40) -> np.ndarray:
    """A dark part with one bright block of 8 × 8 px at x=16, y=8."""
    image = np.full((height, width, 1), 40, np.uint8)
    image[8:16, 16:24] = brightness
    return image


BAD, GOOD = photograph(204), photograph(51, 32, 32)
ENCODED = [encode_png(BAD), encode_png(GOOD)]
BASE64 = [base64.b64encode(data).decode() for data in ENCODED]


def serve_two_versions(models) -> None:
    predictor = models.find().predictor
    served = [
        ServedModel(ModelIdentity(name="part", version=version, sha256=None), (label,), predictor)
        for version, label in (("1", "stable"), ("2", "canary"))
    ]
    models.replace("part", {model.identity.version: model for model in served})
    models.replace("unnamed", {})


@pytest.fixture(scope="module")
def app():
    config = ModelConfig(
        network=NetworkConfig(preset="compact", num_classes=3), input=InputConfig(), classes=CLASSES
    )
    limits = {"max_body_bytes": 100_000, "max_pixels": 4096, "max_side": 100}
    settings = Settings(model=Path("unused"), queue_size=2, max_batch_files=20, **limits)
    return create_app(settings, Predictor(BrightEngine(), config))


@pytest.fixture(scope="module")
def address(app) -> Iterator[str]:
    with served(app) as (host, port):
        serve_two_versions(app.state.service.inspection.models)
        yield f"{host}:{port}"


@pytest.fixture(scope="module")
def triton(address: str) -> Iterator[InferenceServerClient]:
    with InferenceServerClient(address) as client:
        yield client


@pytest.fixture(scope="module")
def http(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://{address}", timeout=30) as client:
        yield client


def image_input(*encoded: bytes) -> InferInput:
    values = np.array(encoded, object)
    return InferInput("image", list(values.shape), "BYTES").set_data_from_numpy(values)


def pixel_input(*images: np.ndarray, binary: bool = True) -> InferInput:
    values = np.stack(images)
    return InferInput("pixels", list(values.shape), "UINT8").set_data_from_numpy(values, binary_data=binary)


def check_outputs(result) -> None:
    """What BAD and GOOD have to be answered with; 204 / 255 = 0.8, 51 / 255 = 0.2."""
    assert result.as_numpy("label").tolist() in ([b"scratch", b"good"], ["scratch", "good"])
    assert result.as_numpy("score") == pytest.approx([0.8, 0.2])
    assert result.as_numpy("threshold").tolist() == [0.5, 0.5]
    assert result.as_numpy("review_threshold").tolist() == [0.5, 0.5]  # none: nothing is between the two
    assert result.as_numpy("probabilities") == pytest.approx(np.array([[0.2, 0.8, 0], [0.8, 0.2, 0]]))


def check_masks(masks: list[bytes]) -> None:
    first, second = (decode_image(mask, "mask").pixels[..., 0] for mask in masks)
    assert (first.shape, second.shape) == ((24, 40), (32, 32))
    assert set(np.unique(first)) == {0, 255}
    assert (first[12, 20], first[2, 2], second.max()) == (255, 0, 0)


# === Health and metadata ===


def test_health(triton):
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert all(triton.is_model_ready("part", version) for version in ("", "2", "canary"))
    assert not triton.is_model_ready("part", "3")
    assert not triton.is_model_ready("other")


def test_draining_server_is_live_and_not_ready(app, triton, http):
    service = app.state.service.inspection
    service.state = "draining"
    try:
        assert triton.is_server_live()
        assert not triton.is_server_ready()
        assert not triton.is_model_ready("part")
        refused = http.post(INFER, content=b"")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert refused.json()["error"] == refused.json()["detail"]
    finally:
        service.state = "ready"


def test_metadata(triton):
    server = triton.get_server_metadata()
    assert (server["name"], server["extensions"]) == ("segdec", ["binary_tensor_data"])
    entry = {"name": "part", "state": "READY", "reason": ""}
    assert triton.get_model_repository_index() == [{**entry, "version": "1"}, {**entry, "version": "2"}]
    base64_in_json = {"parameters": {"content_type": "base64"}}
    assert triton.get_model_metadata("part", "canary") == {
        "name": "part",
        "versions": ["1", "2"],
        "platform": "segdec_artifact",
        "inputs": [
            {"name": "image", "datatype": "BYTES", "shape": [-1], **base64_in_json},
            {"name": "pixels", "datatype": "UINT8", "shape": [-1, -1, -1, -1]},
        ],
        "outputs": [
            {"name": "label", "datatype": "BYTES", "shape": [-1]},
            {"name": "score", "datatype": "FP32", "shape": [-1]},
            {"name": "threshold", "datatype": "FP32", "shape": [-1]},
            {"name": "review_threshold", "datatype": "FP32", "shape": [-1]},
            {"name": "probabilities", "datatype": "FP32", "shape": [-1, 3]},
            {"name": "mask", "datatype": "BYTES", "shape": [-1], **base64_in_json},
        ],
        "parameters": {"version": "2", "aliases": ["canary"], "classes": list(CLASSES), "threshold": 0.5},
    }


# === Inference ===


def test_encoded_photographs_in_binary(triton):
    result = triton.infer("part", [image_input(*ENCODED)], request_id="shift-3")
    check_outputs(result)
    check_masks(result.as_numpy("mask").tolist())
    answer = result.get_response()
    assert (answer["id"], answer["model_name"], answer["model_version"]) == ("shift-3", "part", "1")
    assert [output["name"] for output in answer["outputs"]] == OUTPUTS
    assert all("data" not in output for output in answer["outputs"])


def test_encoded_photographs_in_json(http):
    inputs = [{"name": "image", "shape": [2], "datatype": "BYTES", "data": BASE64}]
    answer = http.post(INFER, json={"inputs": inputs})
    assert answer.headers["Content-Type"] == "application/json"
    assert LENGTH not in answer.headers
    assert "id" not in answer.json()
    outputs = {output["name"]: output for output in answer.json()["outputs"]}
    assert list(outputs) == OUTPUTS
    assert outputs["label"]["data"] == ["scratch", "good"]
    assert outputs["score"]["data"] == pytest.approx([0.8, 0.2])
    assert outputs["probabilities"]["data"] == pytest.approx([0.2, 0.8, 0, 0.8, 0.2, 0])
    assert outputs["mask"]["parameters"] == {"content_type": "base64"}
    check_masks([base64.b64decode(mask, validate=True) for mask in outputs["mask"]["data"]])


@pytest.mark.parametrize("binary", [True, False])
def test_pixels(triton, binary):
    asked = [InferRequestedOutput(name, binary_data=binary) for name in OUTPUTS[:5]]
    check_outputs(triton.infer("part", [pixel_input(BAD, photograph(51), binary=binary)], outputs=asked))


def test_only_requested_outputs_are_answered(triton):
    asked = [InferRequestedOutput("score"), InferRequestedOutput("label", binary_data=False)]
    result = triton.infer("part", [image_input(ENCODED[1])], outputs=asked, model_version="canary")
    assert result.get_response()["model_version"] == "2"
    assert result.get_response()["outputs"] == [
        {"name": "score", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": 4}},
        {"name": "label", "datatype": "BYTES", "shape": [1], "data": ["good"]},
    ]
    assert result.as_numpy("score") == pytest.approx([0.2])


def test_photograph_between_the_thresholds_is_for_review(app, triton):
    models = app.state.service.inspection.models
    config = models.find("part").config
    thresholds = config.thresholds.model_copy(update={"review": 0.1})
    predictor = Predictor(BrightEngine(), config.model_copy(update={"thresholds": thresholds}))
    identity = ModelIdentity(name="careful", version="1", sha256=None)
    models.replace("careful", {"1": ServedModel(identity, ("stable",), predictor)})
    assert triton.get_model_metadata("careful")["parameters"]["review_threshold"] == 0.1
    result = triton.infer("careful", [image_input(*ENCODED)])
    assert result.as_numpy("label").tolist() == [b"scratch", b"review"]
    assert result.as_numpy("threshold").tolist() == [0.5, 0.5]
    assert result.as_numpy("review_threshold") == pytest.approx([0.1, 0.1])
    given = triton.infer("careful", [image_input(*ENCODED)], parameters={"threshold": 0.25})
    assert given.as_numpy("label").tolist() == [b"scratch", b"good"]
    assert given.as_numpy("review_threshold").tolist() == [0.25, 0.25]
    models.replace("careful", {})


def test_more_photographs_than_the_queue_has_places(triton):
    levels = [5 * index for index in range(20)]
    result = triton.infer("part", [pixel_input(*(photograph(40 + level) for level in levels))])
    assert result.as_numpy("score") == pytest.approx([(40 + level) / 255 for level in levels])


# === Errors ===


def message(inputs: list | None = None, **members) -> bytes:
    one = {"name": "image", "shape": [1], "datatype": "BYTES", "data": BASE64[:1]}
    return json.dumps({"inputs": [one] if inputs is None else inputs, **members}).encode()


def pixels(shape: list[int], **members) -> bytes:
    return message([{"name": "pixels", "shape": shape, "datatype": "UINT8", **members}])


CLASSIFICATION = {"name": "label", "parameters": {"classification": 2}}
EMPTY = {"name": "image", "shape": [1], "datatype": "BYTES", "data": [""]}
WRONG = {
    "unknown output": (message(outputs=[{"name": "masks"}]), {}, 400, "unknown_tensor", "'mask'"),
    "output twice": (message(outputs=[{"name": "mask"}] * 2), {}, 400, "bad_tensor", "twice"),
    "classification": (message(outputs=[CLASSIFICATION]), {}, 400, "bad_parameter", "probabilities"),
    "too many pixels": (pixels([1, 65, 64, 1], data=[0] * 4160), {}, 413, "too_many_pixels", "4096 pixels"),
    "too long a side": (pixels([1, 1, 101, 1], data=[0] * 101), {}, 413, "too_many_pixels", "100 px a side"),
    "compressed": (message(), {"Content-Encoding": "gzip"}, 415, "unsupported_content_encoding", "gzip"),
    "colour": (pixels([1, 1, 1, 3], data=[10, 20, 30]), {}, 422, "unsupported_channels", "pixels[0]: "),
    "deadline": (message(parameters={"timeout": 1}), {}, 504, "deadline_passed", "queue or inspection"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_request(http, name):
    body, headers, status, code, words = WRONG[name]
    answer = http.post(INFER, content=body, headers=headers)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code), problem
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert set(problem) == PROBLEM_KEYS
    assert problem["error"] == problem["detail"]
    assert words in problem["detail"], problem["detail"]


def test_triton_client_shows_the_error(triton):
    with pytest.raises(InferenceServerException) as error:
        triton.infer("part", [image_input(ENCODED[0], ENCODED[1][:60])])
    assert error.value.status() == "422"
    assert error.value.message().startswith("image[1]: ")
    with pytest.raises(InferenceServerException, match="No model 'other' is served"):
        triton.get_model_metadata("other")


def test_failed_request_releases_its_queue_places(app, http):
    data = [BASE64[0]] * 19 + [""]
    answer = http.post(INFER, content=message([{**EMPTY, "shape": [20], "data": data}]))
    assert (answer.status_code, answer.json()["code"]) == (422, "empty_image")
    assert answer.json()["error"].startswith("image[19]: ")
    while app.state.service.inspection.queue.admitted:  # a thread may still hold another one of them
        time.sleep(0.001)


def test_mutated_requests_are_rejected(predictor):
    settings = Settings.model_validate({"model": Path("unused")})
    text = message(
        [{**EMPTY, "data": None, "parameters": {"binary_data_size": 5}}],
        outputs=[{"name": "mask", "parameters": {"binary_data": True}}],
        parameters={"threshold": 0.5, "timeout": 5},
    )
    words = [match.span() for match in re.finditer(rb"[\d.]+|null|true|\[[^][]*\]|\{[^{}]*\}|\"\w*\"", text)]
    wrong = [b"null", b"-1", b"[]", b"{}", b"1e999", b"NaN", b"true", b'"x"', b"9" * 20, b"[[1]]", b"\xff"]
    codes = []
    for (start, end), other in itertools.product(words, wrong):
        mangled = text[:start] + other + text[end:]
        try:
            parse_inference_request(mangled + b"\x01\0\0\0a", str(len(mangled)), settings, predictor.config)
        except RequestError as error:
            assert error.status == 400
            codes.append(error.code)
    assert len(words) > 10
    assert set(codes) == {"bad_json", "bad_parameter", "bad_tensor", "unknown_tensor"}
