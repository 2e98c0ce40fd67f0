"""One measurement of `fit`: it runs in its own process, then its exported model is measured."""

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from benchmarks.suite.child_process import call_in_process
from benchmarks.suite.results import FitResult, lowest_cost, measure_scores
from benchmarks.suite.sets import SuiteSet
from datasets.reading import read
from datasets.sample import DataSetItem
from datasets.splitting import write_splits
from datasets.supervision import merged_defects
from segdec.errors import RunError
from segdec.runtime.cli import import_tensorflow
from training.run_name import make_run_name

TIMED_PHOTOGRAPHS = 20


@dataclass(frozen=True)
class FitSettings:
    """Settings of all runs of `fit`.

    `out` is the folder of all outputs, `weights` the value of `--encoder-weights`; `flags` are more flags.
    """

    out: Path
    minutes: float
    weights: str
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = ["fit", f"--minutes {self.minutes:g}", f"--encoder-weights {Path(self.weights).name}"]
        return " ".join([*words, *self.flags])


@dataclass(frozen=True)
class FitRun:
    """One run of `fit`: data set, number of defective training photographs (None = all), and seed."""

    source: SuiteSet
    defects: int | None
    seed: int
    options: FitSettings

    kind: ClassVar[type[FitResult]] = FitResult

    @property
    def name(self) -> str:
        """Name of the run and its files."""
        amount = "all" if self.defects is None else self.defects
        return f"{make_run_name(self.source.name)}_{amount}_seed{self.seed}"

    @property
    def settings(self) -> dict[str, Any]:
        """What the result depends on, besides the name; ready for JSON."""
        given = self.options
        return {"minutes": given.minutes, "weights": Path(given.weights).name, "flags": list(given.flags)}

    @property
    def model(self) -> Path:
        """Folder of the exported model."""
        return self.options.out / "models" / self.name

    def measure(self) -> FitResult:
        """Trains and measures; raises a `SegdecError` if that fails."""
        seconds = run_fit(self)
        return call_in_process(measure_model, self, seconds)


def run_fit(run: FitRun) -> float:
    """Runs `fit` on the training photographs alone; returns its duration, s. The output is in a log file.

    Raises:
        SegdecError: If there are too few defects, or `fit` fails.
    """
    options = run.options
    splits, log = (options.out / folder / f"{run.name}.txt" for folder in ("splits", "logs"))
    for path in (splits, log):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_splits(splits, run.source.training(run.defects, run.seed))
    flags = [
        *("--layout", run.source.layout, "--splits", splits, "--seed", run.seed, "--name", run.name),
        *("--minutes", options.minutes, "--encoder-weights", options.weights),
        *("--runs", options.out / "runs", "--out", run.model, "--overwrite"),
    ]
    command = [
        sys.executable,
        "-m",
        "training",
        "fit",
        str(run.source.root),
        *map(str, flags),
        *options.flags,
    ]
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""]
        raise RunError(f"`fit` exited with {done.returncode}: {lines[-1]} (all output: {log})")
    return time.monotonic() - began


def measure_model(run: FitRun, seconds: float) -> FitResult:
    """Measures the exported model of a run on the test photographs; `seconds` is the duration of `fit`.

    Raises:
        SegdecError: If the model or a photograph cannot be read.
    """
    import_tensorflow()
    from segdec.predictor import Predictor
    from training.metrics.evaluation import evaluate
    from training.run.folder import RunFolder

    predictor = Predictor.load(run.model)
    source, dataset = run.source, run.source.dataset
    if predictor.config.classes != dataset.classes:
        dataset = merged_defects(dataset)
    evaluation = evaluate([(predictor, dataset.of_split("test"))], read, progress=False, resamples=0)
    metrics, results = evaluation.metrics, evaluation.results
    experiment = RunFolder(run.options.out / "runs" / run.name).experiment()
    has_masks = any(result.truth and result.pixels for result in results)
    truths, scores = [result.truth > 0 for result in results], [result.score for result in results]
    average_precision, auroc = measure_scores(truths, scores)
    miss_cost = experiment.threshold.miss_cost
    cost = miss_cost * metrics.false_negatives + metrics.false_positives
    return FitResult(
        name=source.name,
        settings=run.settings,
        average_precision=average_precision,
        auroc=auroc,
        seconds=seconds,
        defects=run.defects,
        seed=run.seed,
        good=metrics.good,
        defective=metrics.defective,
        missed=metrics.false_negatives,
        false_alarms=metrics.false_positives,
        excess_cost=cost - lowest_cost(truths, scores, miss_cost),
        reviews=metrics.reviews,
        mask_iou=metrics.pixels.iou if has_masks else None,
        steps=sum(stage.steps for _, stage in experiment.stages),
        ms_per_photograph=_time_ms(predictor, source.test),
    )


def _time_ms(predictor: Any, items: Sequence[DataSetItem]) -> float:
    """Returns the median duration of one photograph, ms; the first one is a warm-up."""
    durations = []
    for item in (items[0], *items[:TIMED_PHOTOGRAPHS]):
        image = read(item).image
        began = time.perf_counter()
        predictor.predict([image])
        durations.append(1000 * (time.perf_counter() - began))
    return median(durations[1:])
