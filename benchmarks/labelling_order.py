"""Labels that are needed if photographs are labelled in the order of the service, beside random order.

    python -m benchmarks.labelling_order DATA --encoder-weights FILE --write docs/labelling.md

DATA holds one folder for each data set, as for `benchmarks.suite`. The training photographs are labelled step
by step, first some random ones. A model is trained on the labels of each step; its scores and
`api.data_sets.labelling_order` choose the photographs of the next step. The table shows the number of labels
with which the average precision of the test photographs first reaches 95 % of that with all labels.

The model is not `fit`, which would need hours: it is a logistic regression on the maximum and the mean of the
features of a frozen MobileNet. It knows only whether a photograph has a defect, not where.
"""

import argparse
import math
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from api.data_sets.labelling_order import describe_photograph, order_photographs
from benchmarks.harness import describe_machine, markdown_table, wrap_lines
from benchmarks.suite.sets import SuiteSet, load_set
from benchmarks.suite.table import add_write_option, print_and_write
from datasets.sample import DataSetItem
from segdec.errors import ConfigError
from segdec.photograph_check import Vector, measure_photograph
from segdec.runtime.cli import clean_exit, import_tensorflow, parse_seed

SETS = ("magnetic_tile", "capsule", "leather", "kolektorsdd", "dagm_class1", "bricks", "aliens")
MARKER = "<!-- labelling order -->"
FIRST = 6
"""Random photographs that are labelled first; more until both a good and a defective one are among them."""
STEPS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Numbers of labels with which a model is trained."""
SHARE = 0.95
"""Share of the average precision with all labels that must be reached."""
COMPARED = 32
"""Number of labels for which the average precision is shown."""
REGULARISATION = 1.0
"""Inverse strength, `C` of scikit-learn."""
MAX_DEVIATION = 5.0
"""Limit of standardised features."""

Floats = NDArray[np.float64]
Score = Callable[[Floats], Floats]
"""Features [N, D] → log-odds of a defect [N]."""


@dataclass(frozen=True)
class EncodedSet:
    """The photographs of a data set: features for the model, descriptions for the order, labels."""

    name: str
    train: Floats
    test: Floats
    descriptions: Sequence[Vector]
    train_labels: NDArray[np.bool_]
    test_labels: NDArray[np.bool_]


ChooseNext = Callable[[EncodedSet, Sequence[int], Sequence[int], Floats], list[int]]
"""Set, labelled and unlabelled photographs, log-odds of all → the unlabelled ones in order."""


# === Orders ===


def order_as_service(
    source: EncodedSet, labelled: Sequence[int], unlabelled: Sequence[int], odds: Floats
) -> list[int]:
    """The order of the service. The threshold is 0.5: the model gives both classes the same weight."""
    described = [source.descriptions[one] for one in unlabelled]
    known = [source.descriptions[one] for one in labelled]
    order = order_photographs(np.abs(odds[list(unlabelled)]).tolist(), described, known)
    return [unlabelled[one] for one in order]


def order_by_certainty(
    source: EncodedSet,  # noqa: ARG001
    labelled: Sequence[int],  # noqa: ARG001
    unlabelled: Sequence[int],
    odds: Floats,
) -> list[int]:
    """The most uncertain photograph first, without a comparison of photographs."""
    return sorted(unlabelled, key=lambda one: float(abs(odds[one])))


def make_random_order(seed: int) -> ChooseNext:
    """Returns a random order, the same for the same seed."""
    generator = random.Random(seed)
    return lambda _source, _labelled, unlabelled, _odds: generator.sample(list(unlabelled), len(unlabelled))


# === Simulation ===


def simulate(source: EncodedSet, choose_next: ChooseNext, seed: int) -> dict[int, float]:
    """Labels all training photographs; returns the average precision for each number of labels."""
    from sklearn.metrics import average_precision_score

    labelled = draw_first(source.train_labels, seed)
    count = len(source.train_labels)
    course = dict[int, float]()
    score = train(source.train[labelled], source.train_labels[labelled])
    for step in [*(step for step in STEPS if FIRST <= step < count), count]:
        if step > len(labelled):
            unlabelled = [one for one in range(count) if one not in set(labelled)]
            order = choose_next(source, labelled, unlabelled, score(source.train))
            labelled = [*labelled, *order[: step - len(labelled)]]
            score = train(source.train[labelled], source.train_labels[labelled])
        course[len(labelled)] = float(average_precision_score(source.test_labels, score(source.test)))
    return course


def draw_first(labels: NDArray[np.bool_], seed: int) -> list[int]:
    """Draws photographs that are labelled first, until a good and a defective one are among them."""
    drawn = random.Random(seed).sample(range(len(labels)), len(labels))
    count = FIRST
    while len(set(labels[drawn[:count]].tolist())) < 2:
        count += 1
    return drawn[:count]


def train(features: Floats, labels: NDArray[np.bool_]) -> Score:
    """Trains the model."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=REGULARISATION, class_weight="balanced", max_iter=300)
    score: Score = model.fit(features, labels).decision_function
    return score


def count_needed(course: dict[int, float]) -> int:
    """Returns the first number of labels with 95 % of the average precision that all labels give."""
    target = SHARE * course[max(course)]
    return min(count for count, reached in course.items() if reached >= target)


def average_at(course: dict[int, float], count: int) -> float:
    """Returns the average precision with `count` labels, or the next smaller number that was trained."""
    return course[max((known for known in course if known <= count), default=min(course))]


# === Features ===


def encode_set(source: SuiteSet, encoder: str, weights: str) -> EncodedSet:
    """Encodes each photograph once."""
    parts = source.training(None, 0), source.test
    (train_features, descriptions), (test_features, _) = (
        _encode(source.name, items, encoder, weights) for items in parts
    )
    mean, deviation = train_features.mean(axis=0), train_features.std(axis=0) + 1e-3
    scaled = [
        np.clip((features - mean) / deviation, -MAX_DEVIATION, MAX_DEVIATION) / math.sqrt(len(mean) / 100)
        for features in (train_features, test_features)
    ]
    labels = [np.array([item.label > 0 for item in items]) for items in parts]
    return EncodedSet(source.name, scaled[0], scaled[1], descriptions, *labels)


def _encode(
    name: str, items: Sequence[DataSetItem], encoder: str, weights: str
) -> tuple[Floats, Sequence[Vector]]:
    """Returns the pooled features of strides 4, 8 and 16, and the descriptions of the photographs."""
    from benchmarks.suite.features import DEFAULT_SIZE, SIZES, load_encoder, read_batches
    from benchmarks.suite.head_baseline import join

    encode, pooled, descriptions = load_encoder(encoder, weights), list[Floats](), list[Vector]()
    for images, _ in read_batches(items, SIZES.get(name, DEFAULT_SIZE)):
        joined = join(encode(images)).numpy().astype(np.float64)
        pooled.append(np.concatenate([joined.max(axis=(1, 2)), joined.mean(axis=(1, 2))], axis=1))
        descriptions += [describe_photograph(measure_photograph(image.astype(np.uint8))) for image in images]
    return np.concatenate(pooled), descriptions


# === The table ===


def measure_set(source: EncodedSet, seeds: Sequence[int]) -> list[float]:
    """Returns labels needed and average precision with few labels, each for three orders, and with all."""
    needed, reached, whole = list[float](), list[float](), 0.0
    for make in (make_random_order, lambda _: order_by_certainty, lambda _: order_as_service):
        courses = [simulate(source, make(seed), seed) for seed in seeds]
        needed.append(fmean(map(count_needed, courses)))
        reached.append(fmean(average_at(course, COMPARED) for course in courses))
        whole = courses[0][max(courses[0])]
    return [*needed, *reached, whole]


def format_table(measured: dict[str, tuple[int, list[float]]]) -> str:
    """Returns the table: name → number of training photographs, figures of `measure_set`."""
    heading = (
        *("set", "photographs", "random", "uncertain", "service", "service / random"),
        *(f"AP {COMPARED} random", f"AP {COMPARED} uncertain", f"AP {COMPARED} service", "AP all"),
    )
    rows = [_format_row(name, str(count), figures) for name, (count, figures) in measured.items()]
    every = [figures for _, figures in measured.values()]
    means = [fmean(column) for column in zip(*every, strict=True)]
    ratio = math.exp(fmean(math.log(figures[2] / figures[0]) for figures in every))
    return markdown_table(heading, [*rows, _format_row("mean", "", means, ratio)])


def _format_row(name: str, count: str, figures: Sequence[float], ratio: float | None = None) -> list[str]:
    share = figures[2] / figures[0] if ratio is None else ratio
    needed = [f"{value:.0f}" for value in figures[:3]]
    return [name, count, *needed, f"{share:.2f}", *(f"{value:.3f}" for value in figures[3:])]


def measure(options: argparse.Namespace) -> str:
    """Returns the table."""
    sets = [load_set(options.data / name) for name in options.sets]
    measured = dict[str, tuple[int, list[float]]]()
    for source in sets:
        encoded = encode_set(source, options.encoder, options.encoder_weights)
        if len(set(encoded.train_labels.tolist())) < 2:
            raise ConfigError(f"'{source.name}' has no defects for training. Choose other --sets.")
        measured[source.name] = len(encoded.train_labels), measure_set(encoded, options.seeds)
        print(source.name, measured[source.name], file=sys.stderr, flush=True)
    return f"{format_table(measured)}\n\n{_describe(options)}"


def _describe(options: argparse.Namespace) -> str:
    machine = describe_machine()
    text = (
        f"Means of the seeds {', '.join(map(str, options.seeds))}; {machine['processor']}, "
        f"{machine['date']}. random, uncertain, service: labels until {SHARE:.0%} of "
        "`AP all` are reached, in random order, the most uncertain first, and in the order of the service; "
        "the mean of the ratios is the geometric one. "
        f"AP {COMPARED}: average precision of the test photographs with {COMPARED} labels; AP all: with all."
    ).replace("%", " %")
    return wrap_lines(text)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints the table and writes it."""
    description = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser("python -m benchmarks.labelling_order", description=description)
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help="folder with one folder for each data set")
    add("--sets", nargs="+", default=list(SETS), metavar="NAME", help=f"default: {' '.join(SETS)}")
    add("--seeds", nargs="+", type=parse_seed, default=[0, 1, 2, 3, 4], metavar="N", help="default: 0 to 4")
    add("--encoder", default="mobilenet", metavar="NAME", help="default: %(default)s")
    add("--encoder-weights", default="imagenet", metavar="FILE", help="default: %(default)s")
    add_write_option(parser, MARKER)
    options = parser.parse_args(arguments)
    with clean_exit(group="train"):
        import_tensorflow(trains=True)
        print_and_write(lambda: measure(options), options.write, MARKER)


if __name__ == "__main__":
    main()
