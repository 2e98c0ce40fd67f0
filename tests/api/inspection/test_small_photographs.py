"""Small photographs are decoded and answered by the event loop, all others in the image threads."""

import asyncio
import itertools
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal
from unittest.mock import Mock

import cv2
import numpy as np
import pytest

from api.inspection.photograph_pipeline import SMALL_BYTES, SMALL_PIXELS, gather_bounded, is_small
from api.routes.uploads import Upload
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.images import encode_png
from tests.api.conftest import part_image

SIDE = 128


def model_config(mask_stride: Literal[1, 2, 4, 8] = 8, **config: Any) -> ModelConfig:
    return ModelConfig(
        network=NetworkConfig(preset="compact", mask_stride=mask_stride),
        input=InputConfig.model_validate(config),
        classes=("good", "defect"),
    )


NATIVE = model_config()
ENLARGED = model_config(policy="resize", height=136, width=128)


def upload(data: bytes) -> Upload:
    return Upload(data, "The image")


def padded_png(length: int) -> bytes:
    """A small PNG of that many bytes; what follows its end is none of its pixels."""
    return encode_png(np.zeros((8, 8), np.uint8)).ljust(length, b"\0")


def jpeg() -> bytes:
    return bytes(cv2.imencode(".jpg", np.zeros((8, 8), np.uint8))[1])


@pytest.mark.parametrize(
    ("source", "config", "small"),
    [
        (upload(encode_png(np.zeros((SIDE, SIDE), np.uint8))), NATIVE, True),
        (upload(encode_png(np.zeros((SIDE, SIDE + 1), np.uint8))), NATIVE, False),
        (upload(encode_png(np.zeros((1, SMALL_PIXELS), np.uint8))), NATIVE, False),  # padded to 8 rows
        (upload(encode_png(np.zeros((8, 8), np.uint8))), ENLARGED, False),
        (np.zeros((SIDE, SIDE, 1), np.uint8), model_config(mask_stride=4), True),
        (np.zeros((SIDE, SIDE, 1), np.uint8), model_config(mask_stride=2), False),  # a mask of 64 × 64 cells
        (np.zeros((32, 32, 1), np.uint8), model_config(mask_stride=1), True),
        (upload(padded_png(SMALL_BYTES)), NATIVE, True),
        (upload(padded_png(SMALL_BYTES + 1)), NATIVE, False),
        (upload(jpeg()), NATIVE, False),  # its size stands anywhere
        (upload(padded_png(100)[:23]), NATIVE, False),
        (upload(padded_png(100)[:16] + bytes(8)), NATIVE, False),
        (upload(b""), NATIVE, False),
        (np.zeros((SIDE, SIDE, 3), np.uint8), NATIVE, True),
        (np.zeros((SIDE + 1, SIDE, 3), np.uint8), NATIVE, False),
        (np.zeros((0, 8, 1), np.uint8), NATIVE, False),
    ],
)
def test_photograph_is_small(source, config, small):
    assert is_small(source, config) is small


@pytest.mark.parametrize(("height", "steps"), [(24, 0), (SMALL_PIXELS, 2)])
def test_only_what_is_not_small_needs_an_image_thread(serve, make_app, monkeypatch, height, steps):
    with serve(make_app()) as client:
        executor = client.app.state.service.image_threads
        submit = Mock(wraps=executor.submit)
        monkeypatch.setattr(executor, "submit", submit)
        answer = client.post(
            "/v1/predict", content=encode_png(part_image(height, 16)), headers={"Content-Type": "image/png"}
        )
    assert answer.json()["decision"]["label"] == "scratch"
    assert submit.call_count == steps


def test_others_have_their_turn_between_the_small_photographs_of_a_request():
    turns: list[str] = []

    async def work(name: str) -> None:
        turns.append(name)

    async def scenario() -> None:
        service = SimpleNamespace(settings=SimpleNamespace(batch_sizes=(8,)), queue=SimpleNamespace(limit=8))
        request = asyncio.create_task(gather_bounded(service, [partial(work, "small")] * 20))
        while not request.done():
            turns.append("other")
            await asyncio.sleep(0)

    asyncio.run(scenario())
    runs = [len(list(run)) for name, run in itertools.groupby(turns) if name == "small"]
    assert sum(runs) == 20
    assert max(runs) <= 8
