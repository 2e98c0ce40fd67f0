"""What the training engine costs: a run under a mirrored strategy against a bare `tf.function` step.

    python -m benchmarks.engine_overhead [--rounds 5] [--steps 60]
    python -m benchmarks.engine_overhead --size 848 --resize 704 256 --mask-stride 4 --batch-size 2 [--xla]

The bare step computes the same losses and applies the same optimiser, once on batches of the same input
pipeline and once on one batch that lies in memory. The engine is a run of the joint stage on a toy set:
beside the step it distributes batches, keeps averaged weights, gradient norm and log. All run in turn, and
the best round of each counts: what slows a round is other work on the machine. Compiling is not counted.

The second line is about KolektorSDD: photographs of as many pixels, reduced to the size that its experiment
trains on. It leaves with 1 where a bare step with input takes more than 1.05 times the one in memory.
`--xla` adds the step in memory with XLA.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from segdec.runtime.cli import clean_exit, import_tensorflow
from training.config import ExperimentConfig

UNCOUNTED_STEPS = 20
"""First steps of each run, in which TensorFlow compiles."""

LONGEST_WITH_INPUT = 1.05
"""Duration that a step with input may take, one on a batch in memory taking 1."""


@dataclass(frozen=True)
class Overhead:
    """Result of `compare`, the best rounds.

    Attributes:
        bare: Images/s of the bare step with the engine's input.
        in_memory: Images/s of the bare step on one batch in memory.
        engine: Images/s of the engine.
        input_wait: Share of the engine's time spent waiting for batches, median.
        xla: Images/s of the bare step on one batch in memory, compiled by XLA; None = not asked for.
    """

    bare: float
    in_memory: float
    engine: float
    input_wait: float
    xla: float | None = None

    @property
    def with_input(self) -> float:
        """Duration of a bare step with input, one on a batch in memory taking 1."""
        return self.in_memory / self.bare

    def __str__(self) -> str:
        """Returns a line for the terminal."""
        xla = "" if self.xla is None else f", in memory with XLA {self.xla:.1f} images/s"
        return (
            f"bare {self.bare:.1f} images/s ({self.in_memory:.1f} on one batch in memory), "
            f"engine {self.engine:.1f} images/s, ratio {self.engine / self.bare:.3f} "
            f"({self.engine / self.in_memory:.3f}), input wait {self.input_wait:.2%}, "
            f"step with input {self.with_input:.3f} × that in memory{xla}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Compares on a toy set made for the purpose."""
    parser = argparse.ArgumentParser(description="What the training engine costs.")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=60, help="steps a measurement (default: %(default)s)")
    parser.add_argument("--count", type=int, default=100, help="images of the toy set (default: %(default)s)")
    parser.add_argument("--size", type=int, default=128, help="their side, px (default: %(default)s)")
    parser.add_argument("--resize", type=int, nargs=2, metavar=("H", "W"), help="size that is trained on, px")
    parser.add_argument("--mask-stride", type=int, default=8, help="of the network (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=8, help="images a step (default: %(default)s)")
    parser.add_argument("--xla", action="store_true", help="measure the step with XLA, too")
    options = parser.parse_args(arguments)
    with clean_exit(group="train"), tempfile.TemporaryDirectory() as folder:
        import_tensorflow()
        from datasets.layouts.toy import write_toy

        write_toy(Path(folder) / "toy", options.count, size=options.size)
        overhead = compare(build_experiment(Path(folder), options), options.rounds, xla=options.xla)
        print(overhead)
    if overhead.with_input > LONGEST_WITH_INPUT:
        raise SystemExit(1)


def build_experiment(folder: Path, options: argparse.Namespace) -> ExperimentConfig:
    """Builds the joint stage of the compact network on the toy set in `folder`."""
    steps = UNCOUNTED_STEPS + options.steps
    height, width = options.resize or (None, None)
    return ExperimentConfig.model_validate(
        {
            "name": "overhead",
            "runs": folder,
            "strategy": "mirrored",
            "devices": "cpu:1",
            "batch_size": options.batch_size,
            "validate_every": steps,
            "checkpoint_every": steps,
            "log_every": UNCOUNTED_STEPS,
            "network": {
                "preset": "compact",
                "normalization": "instance",
                "mask_stride": options.mask_stride,
            },
            "input": {"policy": "resize" if options.resize else "native", "height": height, "width": width},
            "data": {"layout": "toy", "root": str(folder / "toy")},
            "augmentation": {"brightness": 0.1, "contrast": 0.2},
            "stages": {"joint": {"steps": steps}},
        }
    )


def compare(config: ExperimentConfig, rounds: int, *, xla: bool = False) -> Overhead:
    """Measures all in turn."""
    bare = build_bare(config)
    compiled = build_bare(config, xla=True) if xla else None
    measured = [
        (bare(False), bare(True), *measure_engine(config), compiled(True) if compiled else 0.0)
        for _ in range(rounds)
    ]
    with_input, in_memory, engine, waits, by_xla = zip(*measured, strict=True)
    return Overhead(
        max(with_input), max(in_memory), max(engine), statistics.median(waits), max(by_xla) if xla else None
    )


def measure_engine(config: ExperimentConfig) -> tuple[float, float]:
    """Returns images/s and share of waiting of one run, from its log."""
    from training.run.run_log import read_log
    from training.trainer import Trainer

    folder = Trainer(config, fresh=True).run()
    records = [record for record in read_log(folder.path) if record["kind"] == "train"]
    counted = [record for record in records if record["step"] > UNCOUNTED_STEPS]
    wait = statistics.mean(record["input_wait"] for record in counted)
    return config.batch_size / statistics.mean(record["s_per_step"] for record in counted), wait


def build_bare(config: ExperimentConfig, *, xla: bool = False) -> Callable[[bool], float]:
    """Builds what takes as many bare steps as a run, on one batch or not, and returns images/s."""
    import keras
    import tensorflow as tf

    from segdec.network.network import build_network
    from training.data.input_pipeline import InputPipeline
    from training.data.reading_pool import ReadingPool
    from training.data.run_data import load_run_data
    from training.optimization.objective import stage_losses
    from training.stages import STAGES

    data, stage, settings = load_run_data(config), STAGES[-1], config.stages.joint
    pipeline = InputPipeline(data.examples, data.shape, config, ReadingPool(config.data.decode_threads))
    batches = pipeline.batches(len(STAGES) - 1, 0, settings.steps)
    network = build_network(data.model.network)
    variables = stage.trainable_variables(network)
    optimizer = keras.optimizers.Adam(settings.learning_rate)
    optimizer.build(variables)

    @tf.function(jit_compile=xla)
    def differentiate(batch: dict[str, tf.Tensor]) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(stage_losses(network, stage, config, batch)["loss"])
        return loss, tape.gradient(loss, [variable.value for variable in variables])

    @tf.function
    def step(batch: dict[str, tf.Tensor]) -> tf.Tensor:
        loss, gradients = differentiate(batch)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    def measure(in_memory: bool) -> float:
        source = iter(batches.take(1).cache().repeat() if in_memory else batches)
        for _ in range(UNCOUNTED_STEPS):
            step(next(source))
        steps = settings.steps - UNCOUNTED_STEPS
        began = time.perf_counter()
        for _ in range(steps):
            loss = step(next(source))
        float(loss)
        return config.batch_size * steps / (time.perf_counter() - began)

    return measure


if __name__ == "__main__":
    main()
