"""Size of the training step's graph and its tracing time, by number of replicas.

    python -m benchmarks.step_graph [--replicas 1 2 4 8] [--normalization instance]

It is the joint step of the compact network on logical CPU devices. Times are CPU times. Counted are the
traced operations, and the kernels after TensorFlow's optimisations, without constants and arguments.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import cpu_seconds
from segdec.runtime.cli import clean_exit, import_tensorflow
from training.config import ExperimentConfig

SIZE_PX = 64
"""Side of the images; the graph is the same for all sizes."""

IMAGES = 2
"""Of a replica."""

PARTS = {
    "reductions": ("/distribute/cross_device_ops.py", "/distribute/cross_device_utils.py"),
    "average": ("/optimization/ema.py",),
    "optimiser": ("/optimization/fused_adam.py", "/keras/src/optimizers/"),
    "backward": ("/eager/backprop.py",),
    "forward": ("/optimization/objective.py",),
}
"""Files whose calls create the operations of a part; the first match counts."""

OTHERS = "others"
NO_KERNELS = {"Const", "Placeholder", "_Arg", "_Retval", "NoOp", "Identity"}


@dataclass(frozen=True)
class StepGraph:
    """CPU times of tracing a step and running it once, operations by part, and operations when optimised."""

    replicas: int
    trace_s: float
    first_step_s: float
    traced: Counter[str]
    kernels: int

    def __str__(self) -> str:
        """Returns a line for the terminal."""
        parts = ", ".join(f"{name} {self.traced[name]}" for name in (*PARTS, OTHERS))
        return (
            f"{self.replicas} replica(s): traced in {self.trace_s:.1f} s, first step "
            f"{self.first_step_s:.1f} s, {self.traced.total()} operations ({parts}), {self.kernels} kernels"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line for each number of replicas."""
    parser = argparse.ArgumentParser(description="Size of the graph of a training step.")
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2, 4, 8], help="default: 1 2 4 8")
    parser.add_argument("--normalization", default="instance", help="of the network (default: %(default)s)")
    options = parser.parse_args(arguments)
    with clean_exit(group="train"):
        import_tensorflow()
        from training.distribution.devices import find_devices

        find_devices(f"cpu:{max(options.replicas)}")
        for replicas in options.replicas:
            print(measure(build_experiment(options.normalization), replicas), flush=True)


def build_experiment(normalization: str) -> ExperimentConfig:
    """Builds the joint stage of the compact network."""
    network = {"preset": "compact", "normalization": normalization}
    return ExperimentConfig.model_validate({"network": network, "stages": {"joint": {"steps": 1}}})


def measure(config: ExperimentConfig, replicas: int) -> StepGraph:
    """Traces the joint step and runs it once."""
    import tensorflow as tf

    from training.distribution.strategies import choose_strategy
    from training.optimization.step import build_step
    from training.optimization.train_state import build_train_state
    from training.stages import STAGES

    strategy = choose_strategy("single" if replicas == 1 else "mirrored", f"cpu:{replicas}")
    with strategy.scope():
        state = build_train_state(config)
    step: Any = build_step(strategy, state, STAGES[-1], config)
    side = SIZE_PX // config.network.mask_stride

    def images(_: Any) -> dict[str, tf.Tensor]:
        return {
            "image": tf.zeros((IMAGES, SIZE_PX, SIZE_PX, config.network.input_channels)),
            "target": tf.zeros((IMAGES, side, side, 1)),
            "weight": tf.ones((IMAGES, side, side, 1)),
            "label": tf.zeros(IMAGES, tf.int32),
        }

    batch = strategy.experimental_distribute_values_from_function(images)
    began = cpu_seconds()
    graph = step.get_concrete_function(batch).graph
    traced_at = cpu_seconds()
    kernels = count_kernels(lambda: step(batch))
    traced = count_parts(graph.get_operations())
    return StepGraph(replicas, traced_at - began, cpu_seconds() - traced_at, traced, kernels)


def count_parts(operations: Sequence[Any]) -> Counter[str]:
    """Counts operations by the part of the step that created them."""

    def part(operation: Any) -> str:
        files = [frame.filename for frame in operation.traceback]
        for name, places in PARTS.items():
            if any(place in file for file in files for place in places):
                return name
        return OTHERS

    return Counter(part(operation) for operation in operations)


def count_kernels(take: Any) -> int:
    """Counts the kernels of the first call of a traced function."""
    from tensorflow.python.eager import context  # the only access to optimised graphs

    runtime = context.context()
    runtime.enable_graph_collection()
    try:
        take()
        functions = runtime.export_run_metadata().function_graphs
    finally:
        runtime.disable_graph_collection()
    graphs = [function.partition_graphs for function in functions]
    return max(sum(node.op not in NO_KERNELS for part in parts for node in part.node) for parts in graphs)


if __name__ == "__main__":
    main()
