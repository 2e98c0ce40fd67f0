"""Trains heads on the features of an encoder for a short time, to compare encoders by out-of-fold scores."""

import io
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path

from datasets.sample import DataSetItem
from datasets.splitting import write_splits
from training.config import ExperimentConfig
from training.dry_run import trial_experiment
from training.fit.encoder_choice import MAX_STEPS
from training.fit.time_control import Clock, TimeControl
from training.optimization.pretrained import LoadPretrained
from training.trainer import Trainer


def pick_photographs(items: Sequence[DataSetItem], number: int, seed: int) -> list[DataSetItem]:
    """Picks items of all folds at random, at most half of them defective unless there are few good ones."""
    shuffled = random.Random(seed).sample(items, len(items))
    seen: Counter[tuple[bool, int | None]] = Counter()
    ranks = {}
    for item in shuffled:
        kind = item.label > 0, item.fold
        seen[kind] += 1
        ranks[item.name] = seen[kind]
    ranked = sorted(shuffled, key=lambda item: ranks[item.name])
    defective = [item for item in ranked if item.label > 0]
    good = [item for item in ranked if not item.label]
    picked = defective[: max(number // 2, number - len(good))]
    return [*picked, *good[: number - len(picked)]]


def measure_average_precision(
    config: ExperimentConfig,
    items: Sequence[DataSetItem],
    share_s: float,
    clock: Clock,
    load_weights: LoadPretrained,
) -> tuple[float, int]:
    """Trains the heads of an experiment on items with folds, at most `share_s`, s, in a temporary folder.

    Returns the out-of-fold AP, and the number of steps.

    Raises:
        RunInterruptedError: After SIGTERM or SIGINT.
        SegdecError: If the weights cannot be read, or the loss is not finite.
    """
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):
        splits = Path(folder) / "splits.txt"
        write_splits(splits, items)
        trial = trial_experiment(config, Path(folder), MAX_STEPS)
        data = trial.data.model_copy(update={"splits": splits})
        # A memory costs time, and each encoder gets one.
        network = trial.network.model_copy(update={"memory": 0, "pooled_score": False})
        trial = trial.model_copy(update={"data": data, "network": network})
        control = TimeControl(trial.stages.steps, clock() + share_s, clock)
        result = Trainer(trial, dry_run=True, control=control, load_weights=load_weights).run().result()
    return result.validation["average_precision"] or 0.0, sum(control.taken.values())
