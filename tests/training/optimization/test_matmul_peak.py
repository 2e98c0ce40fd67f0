import itertools
from types import SimpleNamespace

import pytest

pytest.importorskip("tensorflow")

from training.optimization import matmul_peak
from training.optimization.matmul_peak import measure_peak, strategy_peak

pytestmark = pytest.mark.usefixtures("tensorflow_devices")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_fastest_product_counts(monkeypatch, dtype):
    monkeypatch.setitem(matmul_peak.SIDES, "CPU", 8)
    durations = [4.0, 2.0, 0.5, 3.0, 4.0]
    clock = itertools.accumulate(number for duration in durations for number in (1.0, duration))
    assert measure_peak("CPU:0", dtype, clock.__next__) == 2 * 8**3 / 0.5


@pytest.mark.parametrize(
    ("devices", "workers", "peak"),
    [
        (("/device:CPU:0", "/device:CPU:1"), 1, 10.0),
        (("/device:CPU:0",), 3, 30.0),
        (("/device:GPU:0", "/device:GPU:1"), 1, 20.0),
        (("/device:GPU:0", "/device:GPU:1"), 3, 60.0),
    ],
    ids=["logical CPUs share one", "three machines", "two GPUs", "three machines of two GPUs"],
)
def test_the_peak_of_a_strategy_is_that_of_its_devices(monkeypatch, devices, workers, peak):
    measured = []

    def measure(device, dtype):
        measured.append((device, dtype))
        return 10.0

    monkeypatch.setattr(matmul_peak, "measure_peak", measure)
    strategy = SimpleNamespace(extended=SimpleNamespace(worker_devices=devices))
    assert strategy_peak(strategy, workers, "float16") == peak
    assert measured == [("GPU:0" if "GPU" in devices[0] else "CPU:0", "float16")]
