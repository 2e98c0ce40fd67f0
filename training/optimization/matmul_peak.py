"""The peak of a device: how many FLOPs a second it reaches in products of large matrices."""

import time
from collections.abc import Callable

import tensorflow as tf

SIDES = {"CPU": 1024, "GPU": 8192}
"""Rows and columns of the matrices: enough to keep the device busy, done in a few milliseconds."""

ROUNDS = 5
"""Products that are timed; the fastest counts, for what slows a round is other work."""


def strategy_peak(strategy: tf.distribute.Strategy, workers: int, dtype: str) -> float:
    """FLOP/s of all devices of a run together, after one of them; the machines are taken to be alike.

    Logical CPU devices share one CPU, so however many there are, they count once a process.

    Args:
        strategy: Names the devices.
        workers: Number of processes that compute gradients.
        dtype: See `measure_peak`.
    """
    devices = strategy.extended.worker_devices
    on_gpus = "GPU" in devices[0]
    alike = workers * (len(devices) if on_gpus else 1)
    return alike * measure_peak("GPU:0" if on_gpus else "CPU:0", dtype)


def measure_peak(device: str, dtype: str, clock: Callable[[], float] = time.perf_counter) -> float:
    """FLOP/s of the best product of two square matrices; takes about a tenth of a second.

    Args:
        device: Name of a logical device. A CPU computes with all threads of the process, whichever of its
            logical devices is named.
        dtype: Of the matrices.
        clock: Seconds.
    """
    side = SIDES["GPU" if "GPU" in device else "CPU"]
    with tf.device(device):
        matrix = tf.fill((side, side), tf.cast(1.0 / side, dtype))  # products of it stay what it is

        @tf.function
        def multiply() -> tf.Tensor:
            return tf.reduce_max(tf.matmul(matrix, matrix))

        float(multiply())  # traces, and brings the threads up
        durations_s = [_time(multiply, clock) for _ in range(ROUNDS)]
    return float(2.0 * side**3 / min(durations_s))


def _time(multiply: Callable[[], tf.Tensor], clock: Callable[[], float]) -> float:
    began = clock()
    float(multiply())  # waits for the device
    return clock() - began
