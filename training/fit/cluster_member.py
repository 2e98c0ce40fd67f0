"""`fit` and `retrain` in a cluster: the chief chooses the experiment, the other processes train with it."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from segdec.runtime.cli import EXIT_INTERRUPTED
from training.config import ExperimentConfig
from training.distribution.cluster import Cluster
from training.distribution.interruption import PeerLostError, RunInterruptedError, raise_on_sigterm
from training.distribution.process_group_context import ProcessGroupContext
from training.distribution.strategies import check_strategy
from training.experiment_file import load_experiment, save_experiment
from training.fit.time_control import Clock, TimeControl
from training.optimization.pretrained import RANDOM
from training.trainer import Trainer


def connect(
    local: ExperimentConfig, cluster: Cluster | None, clock: Clock
) -> tuple[ProcessGroupContext | None, float]:
    """Connects the processes of a synchronous cluster, before TensorFlow starts; None without a cluster.

    Also returns how long that took, s: others may fetch their data first, which is not the chief's time.

    Raises:
        ConfigError: If strategy, devices and cluster do not fit.
        PeerLostError: If a process does not connect.
    """
    if cluster is None:
        check_strategy(local.strategy, local.devices, None)
        return None, 0.0
    began = clock()
    group = ProcessGroupContext(local.model_copy(update={"strategy": "multi-worker"}), cluster)
    return group, clock() - began


def share_experiment(
    group: ProcessGroupContext | None, config: ExperimentConfig, min_steps: int | None
) -> None:
    """Sends experiment and splits of the chief to the others, which wait in `train_as_member`.

    `min_steps` is that of the `TimeControl`; None without a time limit.
    """
    if group is None:
        return
    splits = config.data.splits
    message = {
        "experiment": save_experiment(config),
        "splits": None if splits is None else splits.read_text("utf-8"),
        "min_steps": min_steps,
    }
    group.broadcast(json.dumps(message).encode())


def make_time_control(
    group: ProcessGroupContext | None,
    steps: Mapping[str, int],
    ends_at: float,
    clock: Clock,
    min_steps: int = 1,
) -> TimeControl:
    """Returns a `TimeControl` with which the processes of a cluster follow the clock of the chief."""
    return TimeControl(steps, ends_at, clock, min_steps, None if group is None else group.agree)


def announce_end(group: ProcessGroupContext | None) -> None:
    """Ends the other processes with exit code 0: the chief has finished. A lost one is of no account now."""
    if group is not None:
        try:
            group.broadcast(b"")
        except PeerLostError:
            return


def train_as_member(group: ProcessGroupContext, local: ExperimentConfig, clock: Clock) -> None:
    """Trains the experiment of the chief until the chief has finished; writes no run and no model.

    `local` says where this process has data and weights.

    Raises:
        PeerLostError: If the chief ends without having finished.
        SegdecError: If the data or weights of this process cannot be used or differ from those of the chief.
        SystemExit: After a signal to any process, unless the chief exports the best model so far.
    """
    with raise_on_sigterm(), tempfile.TemporaryDirectory() as place:
        try:
            config, min_steps = _receive(group, local, Path(place))
            control = None
            if min_steps is not None:
                control = make_time_control(group, config.stages.steps, 0.0, clock, min_steps)
            _train(Trainer(config, control=control, process_group=group))
        except KeyboardInterrupt as stop:
            raise SystemExit(getattr(stop, "exit_code", EXIT_INTERRUPTED)) from None


def _receive(
    group: ProcessGroupContext, local: ExperimentConfig, folder: Path
) -> tuple[ExperimentConfig, int | None]:
    """The experiment of the chief with the paths of this process, and its `min_steps`."""
    message = json.loads(group.broadcast(b""))
    experiment, splits = folder / "experiment.toml", None
    experiment.write_text(message["experiment"], encoding="utf-8")
    if message["splits"] is not None:
        splits = folder / "splits.txt"
        splits.write_text(message["splits"], encoding="utf-8")
    config = load_experiment(experiment)
    places = {name: getattr(local.data, name) for name in ("root", "reviewed", "test_root", "supervision")}
    data = config.data.model_copy(update={**places, "splits": splits, "checked_folder": None})
    changes = {"runs": local.runs, "data": data, "initial_weights": local.initial_weights}
    if config.encoder_weights != RANDOM:
        changes["encoder_weights"] = local.encoder_weights
    return config.model_copy(update=changes), message["min_steps"]


def _train(trainer: Trainer) -> None:
    print(trainer.describe_start(), flush=True)
    stopped = None
    try:
        trainer.run()
    except RunInterruptedError as stop:
        stopped = stop
    try:
        trainer.process_group.broadcast(b"")  # the chief evaluates and exports
    except PeerLostError:
        if stopped is None:
            raise
        raise SystemExit(stopped.exit_code) from None
