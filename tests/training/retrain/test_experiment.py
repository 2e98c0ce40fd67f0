from pathlib import Path

from training.config import ExperimentConfig
from training.experiment_file import load_experiment, save_experiment
from training.retrain.experiment import next_experiment

PARENT = ExperimentConfig(
    validate_every=50,
    threshold={"score": 0.4, "miss_cost": 5},
    data={"reviewed": ["first", "second"], "root": "data/parts"},
    stages={
        "segment": {"steps": 1000, "learning_rate": 0.01, "schedule": {"kind": "poly", "warmup_steps": 100}},
        "decision": {"steps": 0},
        "joint": {
            "steps": 10,
            "schedule": {"kind": "piecewise", "boundaries": [1, 2, 5], "factors": [0.5, 0.2, 0.1]},
        },
    },
)


def test_it_is_that_of_the_parent_but_shorter_and_from_its_weights(tmp_path):
    config = next_experiment(
        PARENT,
        Path("runs/parts_2"),
        reviewed=Path("first"),
        splits=Path("runs/parts_2.splits.txt"),
        weights=Path("runs/parts/network.weights.h5"),
    )
    assert config.data.reviewed == (Path("second"), Path("first")) and config.data.root == "data/parts"
    assert (config.stages.segment.steps, config.stages.segment.learning_rate) == (400, 0.005)
    assert config.stages.segment.schedule.warmup_steps == 40
    assert config.stages.decision == PARENT.stages.decision
    assert (config.stages.joint.steps, config.stages.joint.schedule.boundaries) == (5, (1, 2, 3))
    assert config.validate_every == 20
    assert (config.threshold.score, config.threshold.miss_cost) == (None, 5)
    file = tmp_path / "config.toml"
    file.write_text(save_experiment(config))
    assert load_experiment(file) == config
