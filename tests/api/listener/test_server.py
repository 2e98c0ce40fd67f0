import base64
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import cv2
import httpx
import numpy as np
import pytest

from api.__main__ import main
from api.app import create_app
from api.listener.server import bind, url_of
from api.settings import Settings
from segdec.artifact import manifest_sha256, read_manifest
from segdec.errors import ConfigError
from segdec.images import decode_image
from tests.api.conftest import PNG, ServiceClient

ROOT = Path(__file__).parents[3]
SIZES = [(64, 48), (37, 53), (128, 96)]
TOLERANCE = 1e-5


def start(*arguments: str, stderr: IO[str]) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEGDEC_")}
    command = [sys.executable, "-m", "api", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
    )


@pytest.fixture(scope="module")
def bodies(tiny_artifact: Path) -> list[bytes]:
    """Noise of several sizes, as PNG and JPEG, in the channels that the model takes."""
    channels = read_manifest(tiny_artifact).network.input_channels
    random = np.random.default_rng(1)
    images = [random.integers(0, 256, (*size, channels), np.uint8) for size in SIZES]
    kinds = [".png", ".jpg", ".png"]
    return [cv2.imencode(kind, image)[1].tobytes() for kind, image in zip(kinds, images, strict=True)]


def test_http_answer_equals_the_prediction(tiny_artifact, bodies):
    """Score, mask and regions are those of the predictor, which gets the same files in one call."""
    manifest = read_manifest(tiny_artifact)
    identity = {"name": manifest.name, "version": manifest.version, "sha256": manifest_sha256(tiny_artifact)}
    with ServiceClient(create_app(Settings(model=tiny_artifact, batch_sizes=(1,)))) as client:
        answers = [client.post("/v1/predict", content=body, headers=PNG).json() for body in bodies]
        [model] = client.get("/v1/models").json()["models"]
        predictor = client.app.state.service.inspection.models.find().predictor
    predictions = predictor.predict([decode_image(body, "part").pixels for body in bodies])
    for answer, prediction in zip(answers, predictions, strict=True):
        assert answer["model"] == identity
        decision = answer["decision"]
        assert (decision["label"], decision["threshold"]) == (prediction.label, prediction.threshold)
        assert decision["score"] == pytest.approx(prediction.score, abs=TOLERANCE)
        assert decision["probabilities"] == pytest.approx(prediction.probabilities, abs=TOLERANCE)
        assert len(answer["regions"]) == len(prediction.regions)
        mask = decode_image(base64.b64decode(answer["mask"]["data"]), "mask").pixels[..., 0]
        assert (answer["mask"]["height"], answer["mask"]["width"]) == mask.shape
        certain = np.abs(prediction.mask_scores - prediction.mask_threshold) > TOLERANCE
        assert np.array_equal(mask[certain], prediction.mask[certain])
    assert {0, 255} <= {int(value) for prediction in predictions for value in np.unique(prediction.mask)}
    assert 2**16 < model.pop("max_pixels") <= 2**24  # what it is depends on the machine
    assert model.pop("limited_by") in ("max_pixels", "memory")
    limits = {"score": manifest.thresholds.score, "review": manifest.thresholds.review, "of_model": True}
    assert model == {
        **identity,
        "aliases": ["stable"],
        "signed_by": None,
        "confirmed": None,
        "plans": [],
        "manifest": manifest.model_dump(mode="json"),
        "thresholds": limits,
    }


@pytest.mark.slow
def test_server_prints_its_address_and_stops(tiny_artifact, bodies, tmp_path):
    log = tmp_path / "stderr"
    with (
        log.open("w") as stderr,
        start("--model", str(tiny_artifact), "--port", "0", stderr=stderr) as process,
    ):
        try:
            line = process.stdout.readline()
            with httpx.Client(base_url=line.split(" at ")[-1].strip(), timeout=60) as client:
                broken = client.post("/v1/predict", content=bodies[0][:500], headers=PNG)
                assert (broken.status_code, client.get("/readyz").status_code) == (422, 200)
            process.send_signal(signal.SIGTERM)
            rest, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    manifest = read_manifest(tiny_artifact)
    assert line.startswith(f"Serving {manifest.name} {manifest.version} at http://127.0.0.1:")
    assert (process.returncode, rest) == (0, "")
    room, ready, refused = log.read_text().splitlines()
    assert re.fullmatch(r"\S+ INFO tiny 1: photographs of at most \d+ pixels, .*", room)
    assert re.fullmatch(r"\S+ INFO Ready: .*", ready)
    assert re.fullmatch(r"\S+ WARNING request .* client=127.0.0.1 .* problem=truncated_image .*", refused)


def test_unknown_flag_ends_the_start(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["api", "--modle", "x"])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: Unknown setting --modle. Did you mean --model?\n"


def test_address_that_is_in_use_or_unknown_is_refused():
    with bind("127.0.0.1", 0) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"127.0.0.1:{port}.*--port"):
            bind("127.0.0.1", port)
    with pytest.raises(ConfigError, match="--host"):
        bind("999.1.1.1", 0)


def test_url_of_an_ipv6_address_is_in_brackets():
    try:
        listener = bind("::1", 0)
    except ConfigError:
        pytest.skip("no IPv6 loopback here")
    with listener:
        assert url_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"
