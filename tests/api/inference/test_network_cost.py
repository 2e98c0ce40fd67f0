"""The cost of a network is its measured memory, with a safety factor, over the pixels of its input."""

import pytest

from api.inference import network_cost
from api.inference.network_cost import measure_cost
from segdec.config import InputConfig
from tests.api.inference.test_inference_thread import thread

LARGEST = 1024 * 1024
SIZED = InputConfig(policy="resize", height=16, width=24)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("config", "peak_bytes", "expected"),
    [
        (InputConfig(), 1000 + LARGEST, (0, 1.3, 4096)),
        (InputConfig(), None, (0, 1500, 4096)),  # the system does not report it
        (SIZED, 1000 + 2000, (1.3 * 2000, 0, 0)),
        (SIZED, None, (1500 * 8 * 16 * 24, 0, 0)),  # of the largest batch
    ],
)
async def test_cost_of_a_network(monkeypatch, predictor, config, peak_bytes, expected):
    monkeypatch.setattr(network_cost, "resident_bytes", lambda: 1000)
    monkeypatch.setattr(network_cost, "measure_peak_memory", lambda work: (work(), peak_bytes)[1])
    monkeypatch.setattr(network_cost, "MAX_RUN_S", 1e9)
    predictor.config = predictor.config.model_copy(update={"input": config})
    predictor.batch_pixels = 4096
    async with thread(batch_sizes=(1, 8), max_batch_pixels=None) as inference:
        cost = await measure_cost(predictor, inference)
    assert (cost.base_bytes, cost.bytes_per_pixel, cost.min_pixels) == pytest.approx(expected)
    assert predictor.shapes[-1] == ((1, 1024, 1024, 1) if config.policy == "native" else (8, 16, 24, 1))
