"""Measurement of a baseline on the test photographs of a data set."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.suite.child_process import call_in_process
from benchmarks.suite.results import Result, measure_scores
from benchmarks.suite.sets import SuiteSet
from segdec.errors import ConfigError
from segdec.runtime.cli import import_tensorflow
from training.run_name import make_run_name

BASELINES = ("head", "memory")


@dataclass(frozen=True)
class BaselineRun:
    """One measurement of a baseline, by its name in `BASELINES`, with an encoder and its weights."""

    source: SuiteSet
    baseline: str
    encoder: str
    weights: str

    kind = Result

    @property
    def name(self) -> str:
        """Name of the file of the result."""
        return f"{make_run_name(self.source.name)}_{self.baseline}_{self.encoder}"

    @property
    def settings(self) -> dict[str, Any]:
        """What the result depends on, besides the name; ready for JSON."""
        return {"weights": Path(self.weights).name}

    def measure(self) -> Result:
        """Trains and measures; raises a `SegdecError` if that fails."""
        return call_in_process(measure_baseline, self)


def check_encoder(name: str, weights: str) -> None:
    """Raises a `ConfigError` if the encoder is unknown, or its weights are missing or do not fit."""
    import_tensorflow()
    from benchmarks.suite.features import load_encoder

    load_encoder(name, weights)


def measure_baseline(run: BaselineRun) -> Result:
    """Trains and measures a baseline.

    Raises:
        SegdecError: If weights are missing, a photograph cannot be read, or defects to train on are missing.
    """
    import_tensorflow(trains=True)
    from benchmarks.suite import head_baseline, memory_baseline
    from benchmarks.suite.features import DEFAULT_SIZE, SIZES, load_encoder

    train, test = run.source.training(None, 0), run.source.test
    if run.baseline == "head" and sum(item.label > 0 for item in train) < head_baseline.HEADS:
        raise ConfigError(
            f"'{run.source.name}' has fewer than {head_baseline.HEADS} defective photographs for training. "
            "Expected one for each fold of the baseline."
        )
    began = time.monotonic()
    size = SIZES.get(run.source.name, DEFAULT_SIZE)
    score = head_baseline.score if run.baseline == "head" else memory_baseline.score
    scores: Sequence[float] = score(train, test, load_encoder(run.encoder, run.weights), size)
    average_precision, auroc = measure_scores([item.label > 0 for item in test], scores)
    return Result(
        name=run.source.name,
        settings=run.settings,
        average_precision=average_precision,
        auroc=auroc,
        seconds=time.monotonic() - began,
    )
