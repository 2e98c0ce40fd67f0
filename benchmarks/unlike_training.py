"""Photographs unlike those of the training: how many are refused or have a warning, and how many usual ones.

    python -m benchmarks.unlike_training DATA --encoder-weights FILE

DATA holds one folder for each data set, as for `benchmarks.suite`. Half of the parts of a set, or fewer, give
the limits; usual photographs are those of the other half. Many random splits show the mean and, in brackets,
the worst one. In splits by name the first parts give the limits for the last ones, and the other way round.

Altered photographs are copies of good ones whose parts did not give the limits. A defocused photograph gets
new noise, as a camera would add it; a shifted one repeats its border. Inputs are scaled, so that half the
resolution makes no difference unless it looks less sharp. Without an encoder there is no measure `surface`,
as for a model without a memory. The last table shows the percentage of the photographs found whose reason is
one that a person would name.
"""

import argparse
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import markdown_table
from benchmarks.suite.sets import SuiteSet, list_sets
from datasets.reading import read
from segdec import photograph_reasons as reasons
from segdec.config import InputConfig
from segdec.errors import ConfigError
from segdec.inference.preprocessing import prepare_image
from segdec.photograph_check import (
    PROPORTIONS,
    Alteration,
    PhotographLimits,
    Vector,
    measure_photograph,
    measure_proportions,
)
from segdec.runtime.cli import clean_exit, import_tensorflow
from training.config import ExperimentConfig
from training.data.subsets import pick_evenly
from training.photograph_alterations import measure_alterations
from training.photograph_limits import (
    MAX_ALTERED,
    MAX_PHOTOGRAPHS,
    MIN_PHOTOGRAPHS,
    BlurChanges,
    Infer,
    choose_limits,
    measure_with,
)

Image = NDArray[np.uint8]
Random = np.random.Generator
Measures = Mapping[str, Vector]

HALF = "half"
SIZES = HALF, "25", "10", "5"
"""Numbers of parts that give the limits."""

SIDE = 256
"""Shorter side of the network's input, px."""

PROJECTION_PHOTOGRAPHS = 60
"""Good photographs of a set whose features determine the projection of patches."""

CHANNELS = 3
NOISE = 1.0
"""Standard deviation of a camera's noise, levels."""

REASON_SPLITS = 2
"""Splits of which reasons are found: they take most of the time."""

BLACK_REASONS = reasons.BLACK, reasons.CAUSES["darker"]
WHITE_REASONS = reasons.WHITE, reasons.CAUSES["brighter"]
PART_REASONS = reasons.SCENE, reasons.PART
BLURRED_REASONS = (reasons.CAUSES["blurred"],)
EXPECTED: dict[str, tuple[str, ...]] = {
    "lamp off": (reasons.BLACK,),
    "lens cap": (reasons.BLACK,),
    "overexposed": WHITE_REASONS,
    "grey": (reasons.FLAT,),
    "gradient": PART_REASONS,
    "defocused, sigma 1/128": BLURRED_REASONS,
    "defocused, sigma 1/64": BLURRED_REASONS,
    "defocused, sigma 1/32": BLURRED_REASONS,
    "shifted by half": PART_REASONS,
    "rotated by 90°": (*PART_REASONS, reasons.OTHER_PROPORTIONS),
    "mirrored": PART_REASONS,
    "another product": PART_REASONS,
    "red and blue swapped": (reasons.COLOURS,),
    "12 bits read as 16": BLACK_REASONS,
    "half the resolution": BLURRED_REASONS,
    "blurred, sigma 1 px": BLURRED_REASONS,
    "blurred, sigma 2 px": BLURRED_REASONS,
    "blurred, sigma 4 px": BLURRED_REASONS,
    "noise, sigma 25": (reasons.CAUSES["noisier"],),
    "half the light": BLACK_REASONS,
    "twice the light": WHITE_REASONS,
}
"""Reasons that a person would name, by kind."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints tables of usual and of altered photographs."""
    parser = argparse.ArgumentParser(description="Photographs unlike those of the training.")
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help="folder with one folder for each data set")
    add("--sets", nargs="+", default=[], metavar="NAME", help="default: all that can be measured")
    add("--parts", nargs="+", default=SIZES, metavar="N", help="that give the limits; default: %(default)s")
    add("--splits", type=int, default=50, metavar="N", help="random ones; default: %(default)s")
    add(
        "--altered", type=int, default=24, metavar="N", help="good photographs of a set; default: %(default)s"
    )
    add("--encoder", default="mobilenet", metavar="NAME", help="default: %(default)s")
    add("--encoder-weights", metavar="FILE", help="of the encoder, as for fit; default: no encoder")
    add("--seed", type=int, default=0, help="default: %(default)s")
    options = parser.parse_args(arguments)
    sources, errors = list_sets(options.data, options.sets)
    for name, error in errors.items():
        print(f"ignored: {name}: {error}", file=sys.stderr)
    if not sources:
        raise ConfigError(f"No data set of '{options.data}' can be measured. Expected one with a test split.")
    weights = options.encoder_weights
    load = None if weights is None else partial(load_surface_network, weights, options.encoder)
    sets = [MeasuredSet(source, load) for source in sources]
    for own in sets:
        own.measure_altered([each for each in sets if each is not own], options.altered, options.seed)
    results = {own.name: check_set(own, options.parts, options.splits) for own in sets}
    print("\n\n".join(tabulate_all(results, options.parts)))
    print(f"\nCheck of a photograph of 512 × 512 px in colour: {measure_ms():.1f} ms.")


# === Photographs ===


@dataclass(frozen=True)
class AlteredPhotograph:
    """An altered copy of a photograph of `part`; None: of another product."""

    kind: str
    part: str | None
    measured: Measures


class MeasuredSet:
    """The photographs of a data set, with the measures of each as the network's input.

    Attributes:
        config: Scales to the median proportions; the shorter side becomes 256 px.
        infer: Returns the measure `surface`, with a projection from its good photographs; None: without it.
        altered: Altered copies, see `measure_altered`.
    """

    def __init__(self, source: SuiteSet, load: Callable[[Sequence[Image]], Infer] | None) -> None:
        self.name = source.name
        items = list(source.dataset.items)
        self.parts = [item.group for item in items]
        self.defective = [item.label > 0 for item in items]
        self.images = [read(item, white_level=65535).image for item in items]
        proportion = median(image.shape[0] / image.shape[1] for image in self.images)
        height, width = (round(SIDE * max(value, 1) / 8) * 8 for value in (proportion, 1 / proportion))
        self.config = InputConfig(policy="resize", height=height, width=width)
        self.coloured = any(bool(np.ptp(image, axis=-1).max() > 30) for image in self.images[:20])
        good = [image for image, bad in zip(self.images, self.defective, strict=True) if not bad]
        sampled = pick_evenly(good, PROJECTION_PHOTOGRAPHS)
        self.infer = None if load is None else load([self._prepare(image) for image in sampled])
        self.measured = [self.measure(image) for image in self.images]
        self.altered: list[AlteredPhotograph] = []
        self._known: dict[int, tuple[BlurChanges, tuple[Alteration, ...]]] = {}

    def measure(self, image: Image) -> Measures:
        """Returns the measures of a photograph."""
        measured = measure_with(self.infer, self._prepare(image))
        return {**measured, PROPORTIONS: measure_proportions(*image.shape[:2])}

    def measure_altered(self, others: Sequence["MeasuredSet"], count: int, seed: int) -> None:
        """Alters `count` good photographs, each of another part, in every way."""
        random = np.random.default_rng(seed)
        products = [image for each in others for image in each.images]
        good = {self.parts[index]: index for index, bad in enumerate(self.defective) if not bad}
        for index in random.permutation(list(good.values()))[:count].tolist():
            for kind, image in alter(self.images[index], products, random, coloured=self.coloured):
                part = None if kind == "another product" else self.parts[index]
                self.altered.append(AlteredPhotograph(kind, part, self.measure(image)))

    def choose_limits(self, parts: set[str]) -> PhotographLimits | None:
        """Returns the limits that a training on these parts chooses; None if these are too few."""
        own = [index for index, part in enumerate(self.parts) if part in parts]
        chosen = pick_evenly(own, MAX_PHOTOGRAPHS)
        if len(chosen) < MIN_PHOTOGRAPHS:
            return None
        changes = [self._measure_changes(index) for index in pick_evenly(chosen, MAX_ALTERED)]
        blur = BlurChanges(
            _mean([each.slight for each, _ in changes]), _mean([each.strong for each, _ in changes])
        )
        limits = choose_limits(
            [self.measured[index] for index in chosen], [self.parts[index] for index in chosen], blur
        )
        alterations = tuple(
            Alteration(cause=first.cause, shifts=_mean([each.shifts for each in (first, *others)]))
            for first, *others in zip(*(alterations for _, alterations in changes), strict=True)
        )
        return limits.model_copy(update={"alterations": alterations})

    def _measure_changes(self, index: int) -> tuple[BlurChanges, tuple[Alteration, ...]]:
        if index not in self._known:
            prepared = [self._prepare(self.images[index])]
            self._known[index] = BlurChanges.of(prepared, self.infer), measure_alterations(prepared)
        return self._known[index]

    def _prepare(self, image: Image) -> Image:
        return prepare_image(image, self.config, CHANNELS)


def _mean(changes: Sequence[Mapping[str, Sequence[float] | Vector]]) -> dict[str, Vector]:
    return {name: np.mean([np.asarray(each[name]) for each in changes], axis=0) for name in changes[0]}


# === Splits ===


@dataclass(frozen=True)
class PartSplit:
    """The parts that give the limits, and those that are checked; `by_name`: not a random split."""

    size: str
    number: int
    train: set[str]
    held: set[str]
    by_name: bool = False


def split_parts(parts: Sequence[str], sizes: Sequence[str], count: int) -> Iterator[PartSplit]:
    """Yields `count` random splits, and two by name, for each size of at most half of the parts."""
    known = sorted(set(parts), key=lambda part: ([int(word) for word in re.findall(r"\d+", part)][-1:], part))
    half = len(known) // 2
    numbers = {size: half if size == HALF else int(size) for size in sizes}
    for size, number in numbers.items():
        if number > half or (size != HALF and number == half):
            continue
        for seed in range(count):
            drawn = np.random.default_rng(seed).permutation(known).tolist()
            yield PartSplit(size, seed, set(drawn[:number]), set(drawn[half:]))
        for seed, ordered in enumerate((known, known[::-1])):
            yield PartSplit(size, seed, set(ordered[:number]), set(ordered[half:]), by_name=True)


@dataclass
class Counts:
    """Numbers of photographs: refused, with a warning instead, all. `worst`: highest share refused, %."""

    refused: int = 0
    warned: int = 0
    total: int = 0
    worst: float = 0.0

    def add(self, refused: Sequence[bool], warned: Sequence[bool]) -> None:
        """Adds the photographs of a split."""
        self.refused += sum(refused)
        self.warned += sum(warned)
        self.total += len(refused)
        self.worst = max(self.worst, 100 * sum(refused) / max(len(refused), 1))

    def __add__(self, other: "Counts") -> "Counts":
        worst = max(self.worst, other.worst)
        return Counts(
            self.refused + other.refused, self.warned + other.warned, self.total + other.total, worst
        )

    @property
    def usual_cell(self) -> str:
        """Refused (in the worst split); warned, %."""
        if not self.total:
            return "–"
        refused, warned = (100 * each / self.total for each in (self.refused, self.warned))
        return f"{refused:.2g} ({self.worst:.2g}); {warned:.2g}"

    @property
    def altered_cell(self) -> str:
        """Refused (refused or warned), %."""
        if not self.total:
            return "–"
        refused, found = (100 * each / self.total for each in (self.refused, self.refused + self.warned))
        return f"{refused:.3g}" if refused == found else f"{refused:.3g} ({found:.3g})"


@dataclass
class SetResult:
    """What the check finds in a data set.

    Attributes:
        usual: Usual photographs by size, and by size and name.
        altered: Altered photographs by kind and size.
        expected: Whether the reason of those found is one in `EXPECTED`, by kind; for the first size.
    """

    usual: defaultdict[tuple[str, bool], Counts]
    altered: defaultdict[tuple[str, str], Counts]
    expected: defaultdict[str, list[bool]]


def check_set(own: MeasuredSet, sizes: Sequence[str], splits: int) -> SetResult:
    """Checks the photographs of a set, and altered ones, with the limits of many splits."""
    result = SetResult(defaultdict(Counts), defaultdict(Counts), defaultdict(list))
    for split in split_parts(own.parts, sizes, splits):
        limits = own.choose_limits(split.train)
        if limits is None:
            continue
        held = [each for part, each in zip(own.parts, own.measured, strict=True) if part in split.held]
        result.usual[split.size, split.by_name].add(*check(limits, held))
        if split.by_name:
            continue
        altered: defaultdict[str, list[Measures]] = defaultdict(list)
        for each in own.altered:
            if each.part not in split.train:
                altered[each.kind].append(each.measured)
        for kind, measured in altered.items():
            result.altered[kind, split.size].add(*check(limits, measured))
            if split.size == sizes[0] and split.number < REASON_SPLITS:
                found = [reasons.find_reason(limits, each, limits.distances(each)) for each in measured]
                result.expected[kind] += [each in EXPECTED[kind] for each in found if each is not None]
    return result


def check(limits: PhotographLimits, measured: Sequence[Measures]) -> tuple[list[bool], list[bool]]:
    """Returns which photographs are refused, and which have a warning instead."""
    refused = [reasons.is_refused(limits, each) for each in measured]
    distances = [max(limits.distances(each).values()) for each in measured]
    return refused, [not no and distance > 1 for no, distance in zip(refused, distances, strict=True)]


# === Tables ===


def tabulate_all(results: Mapping[str, SetResult], sizes: Sequence[str]) -> Iterator[str]:
    """Yields tables: usual photographs by set and size; altered ones by kind and size, by kind and set."""
    found = results.values()
    for by_name in (False, True):
        order = "by name" if by_name else "random splits"
        rows = {name: [each.usual[size, by_name] for size in sizes] for name, each in results.items()}
        rows["all"] = [sum(column, Counts()) for column in zip(*rows.values(), strict=True)]
        cells = [[name, *(counts.usual_cell for counts in row)] for name, row in rows.items()]
        yield markdown_table([f"usual, {order}: refused (worst); warned, %", *sizes], cells)
    heading = "refused (refused or warned), %"
    all_counts = {
        (kind, size): sum((each.altered[kind, size] for each in found), Counts())
        for kind in EXPECTED
        for size in sizes
    }
    by_size = [[kind, *(all_counts[kind, size].altered_cell for size in sizes)] for kind in EXPECTED]
    yield markdown_table([heading, *sizes], by_size)
    by_set = [[kind, *(each.altered[kind, sizes[0]].altered_cell for each in found)] for kind in EXPECTED]
    yield markdown_table([heading, *results], by_set)
    expected = [
        {**each.expected, "all": [hit for hits in each.expected.values() for hit in hits]} for each in found
    ]
    cells = []
    for kind in (*EXPECTED, "all"):
        of_sets = [hits.get(kind, []) for hits in expected]
        every = [hit for hits in of_sets for hit in hits]
        cells.append([kind, *map(_percent, of_sets), _percent(every), str(len(every))])
    yield markdown_table(["expected reason, %", *results, "all", "photographs"], cells)


def _percent(hits: Sequence[bool]) -> str:
    return f"{100 * float(np.mean(hits)):.3g}" if hits else "–"


# === Alterations ===


def alter(
    image: Image, others: Sequence[Image], random: Random, *, coloured: bool
) -> Iterator[tuple[str, Image]]:
    """Yields altered photographs, each with its kind."""
    height, width = image.shape[:2]
    levels = image.astype(np.float32)
    yield "lamp off", _photograph(0.1 * levels, random)
    yield "lens cap", _photograph(np.zeros_like(levels), random)
    yield "overexposed", _photograph(4 * levels + 100, random)
    yield "grey", np.full_like(image, 128)
    ramp = np.linspace(0, 255, width, dtype=np.float32)[None, :, None]
    yield "gradient", np.broadcast_to(ramp, image.shape).astype(np.uint8)
    for share in (128, 64, 32):
        yield f"defocused, sigma 1/{share}", _blur(levels, min(height, width) / share, random)
    shift = (height // 2, 0) if random.random() < 0.5 else (0, width // 2)
    yield (
        "shifted by half",
        np.pad(image, ((0, shift[0]), (0, shift[1]), (0, 0)), "edge")[shift[0] :, shift[1] :],
    )
    yield "rotated by 90°", np.rot90(image)
    yield "mirrored", image[:, ::-1]
    if others:
        other = others[int(random.integers(len(others)))]
        yield "another product", _scaled(other, height, width)
    if coloured:
        yield "red and blue swapped", image[..., ::-1]
    yield "12 bits read as 16", image // 16
    yield "half the resolution", _scaled(image, height // 2, width // 2)
    for sigma in (1, 2, 4):
        yield f"blurred, sigma {sigma} px", _blur(levels, sigma, random)
    yield "noise, sigma 25", _photograph(levels + random.normal(0, 25, levels.shape), random)
    yield "half the light", _photograph(levels / 2, random)
    yield "twice the light", _photograph(2 * levels, random)


def _blur(levels: NDArray[np.float32], sigma: float, random: Random) -> Image:
    blurred = np.asarray(cv2.GaussianBlur(levels, (0, 0), sigma), np.float32)
    return _photograph(blurred.reshape(levels.shape), random)


def _photograph(levels: NDArray[np.floating], random: Random) -> Image:
    """Adds a camera's noise, and rounds."""
    noise = random.normal(0, NOISE, levels.shape[:2])[..., None]
    return np.asarray(np.clip(np.round(levels + noise), 0, 255), np.uint8)


def _scaled(image: Image, height: int, width: int) -> Image:
    scaled = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    return np.asarray(scaled, np.uint8).reshape(height, width, -1)


# === Surface ===


def load_surface_network(weights: str, encoder: str, images: Sequence[Image]) -> Infer:
    """Returns a function that runs a network whose memory is not built: the mean patch does not depend on it.

    The projection is that of prepared good photographs.

    Raises:
        ConfigError: If the weights are missing or do not fit the encoder.
    """
    import_tensorflow()
    from segdec.engines.tensorflow import NetworkEngine
    from training.data.array_cache import ArrayCache
    from training.data.feature_cache import FeatureCache
    from training.optimization.pretrained import build_initial_network, load_pretrained
    from training.surface_patches import set_projection

    network = {"preset": "mobilenet", "encoder": encoder, "input_channels": CHANNELS, "heads": 0, "memory": 1}
    config = ExperimentConfig.model_validate({"encoder_weights": weights, "network": network})
    built = build_initial_network(config, load_pretrained(config))
    encode = FeatureCache(built.encoder, images[0].shape, ArrayCache(0), 0).find
    set_projection(built.memory, encode, images, np.random.default_rng(0))
    return NetworkEngine(built).infer


# === Cost ===


def measure_ms(rounds: int = 50) -> float:
    """Returns the median duration of the measures of a photograph of 512 × 512 px, milliseconds."""
    image = np.random.default_rng(0).integers(0, 256, (512, 512, 3), np.uint8)
    durations = []
    for _ in range(rounds):
        began = time.perf_counter()
        measure_photograph(image)
        durations.append(1000 * (time.perf_counter() - began))
    return median(durations)


if __name__ == "__main__":
    with clean_exit():
        main()
