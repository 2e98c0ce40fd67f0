import json
from unittest.mock import call, create_autospec

import numpy as np
import pytest
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from training.run.run_log import RunLog, read_log
from training.run.tracker import Tracker

STAGES = ("segment", "decision", "joint")


def train(log, index, steps, loss=0.0):
    for step in steps:
        log.scalars("train", STAGES[index], index, step, {"loss": loss + step, "learning_rate": 0.5})


def curve(folder, stage, tag):
    """Steps and values that TensorBoard shows."""
    events = EventAccumulator(str(folder / "tensorboard" / stage)).Reload()
    return [(event.step, event.tensor_proto.float_val[0]) for event in events.Tensors(tag)]


def tags(folder, stage):
    return set(EventAccumulator(str(folder / "tensorboard" / stage)).Reload().Tags()["tensors"])


def test_curves_are_grouped(tmp_path):
    values = {"loss": 1.0, "learning_rate": 0.1, "weight_norm": 2.0, "gradient_norm": 3.0, "input_wait": 0.1}
    values |= {"replica_loss_0": 0.5, "replica_loss_1": 1.5}
    with RunLog(tmp_path, stage=0, step=0) as log:
        log.scalars("train", "segment", 0, 1, values)
        log.scalars("val", "segment", 0, 1, {"average_precision": 0.5, "auroc": None})
        log.images("val", "segment", 0, 1, {"defect/1": np.zeros((4, 4, 3), np.uint8)})
        log.images("train", "segment", 0, 1, {"batch": np.zeros((4, 4, 3), np.uint8)})
    assert tags(tmp_path, "segment") == {
        "loss/loss",
        "optimization/learning_rate",
        "optimization/weight_norm",
        "optimization/gradient_norm",
        "speed/input_wait",
        "validation/average_precision",
        "panel/defect/1",
        "training_panel/batch",
        "replica_loss/0",
        "replica_loss/1",
    }
    assert curve(tmp_path, "segment", "optimization/gradient_norm") == [(1, 3.0)]
    assert read_log(tmp_path)[1]["auroc"] is None


def test_a_resumed_run_shows_each_step_once(tmp_path):
    with RunLog(tmp_path, stage=0, step=0) as log:
        train(log, 0, (1, 2, 3))
        train(log, 1, (1, 2, 3, 4, 5))
    for _ in range(2):
        with RunLog(tmp_path, stage=1, step=2) as log:
            train(log, 1, (3, 4), loss=10.0)
    with RunLog(tmp_path, stage=1, step=4) as log:
        train(log, 1, (5,), loss=10.0)
        train(log, 2, (1, 2))
    assert curve(tmp_path, "segment", "loss/loss") == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert curve(tmp_path, "decision", "loss/loss") == [(4, 1.0), (5, 2.0), (6, 13.0), (7, 14.0), (8, 15.0)]
    assert curve(tmp_path, "joint", "loss/loss") == [(9, 1.0), (10, 2.0)]
    logged = [(record["stage"], record["loss"]) for record in read_log(tmp_path)]
    shown = [(stage, loss) for stage in STAGES for _, loss in curve(tmp_path, stage, "loss/loss")]
    assert logged == shown


def test_a_line_cut_by_a_kill_is_removed(tmp_path):
    with RunLog(tmp_path, stage=0, step=0) as log:
        train(log, 0, (1, 2))
    path = tmp_path / "log.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    with RunLog(tmp_path, stage=0, step=2) as log:
        train(log, 0, (3,))
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 3]


def test_trackers_get_everything_in_order(tmp_path):
    with RunLog(tmp_path, stage=0, step=0) as log:
        train(log, 0, (1, 2))
    tracker, error = create_autospec(Tracker, instance=True), ValueError()
    with pytest.raises(ValueError), RunLog(tmp_path, stage=0, step=1, trackers=[tracker]) as log:
        train(log, 0, (2,))
        log.finish({"average_precision": 1.0})
        raise error
    first, second = read_log(tmp_path)
    finish, close = call.finish({"average_precision": 1.0}), call.close(error)
    assert tracker.mock_calls == [call.start([first]), call.record(second), finish, close]
