"""Photographs unlike those of the training that are rejected, and photographs that are rejected by mistake.

    python -m benchmarks.unlike_training DATA --encoder-weights FILE

DATA holds one folder for each data set, as for `benchmarks.suite`. The parts of a set are split into folds;
the limits come from all photographs of the other folds. The table shows the percentage of the fold's
photographs that is rejected: good and defective ones, and good ones after an alteration. A defocused
photograph gets new noise, as a camera would add it; a shifted one repeats its border. Inputs are scaled, so
that half the resolution is no reason to reject a photograph unless it looks less sharp. Without an encoder
there is no measure `surface`, as for a model without a memory. The second table shows the percentage of the
rejected photographs whose reason is one that a person would name.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
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
from segdec.artifact import TrainingPhotographs, compare_with
from segdec.config import InputConfig
from segdec.errors import ConfigError
from segdec.inference.preprocessing import prepare_image
from segdec.photograph_check import measure_photograph
from segdec.runtime.cli import clean_exit, import_tensorflow
from training.config import ExperimentConfig
from training.data.subsets import pick_evenly
from training.photograph_alterations import measure_alterations, measure_blur
from training.photograph_limits import FALSE_ALARM_RATE, MAX_ALTERED, Infer, choose_limits, measure_with

Image = NDArray[np.uint8]
Random = np.random.Generator

Reasons = dict[str, list[str | None]]
"""Reason of each photograph by kind; None: it is not rejected."""

FOLDS = 5
SIDE = 256
"""Shorter side of the network's input, px."""
CHANNELS = 3
NOISE = 1.0
"""Standard deviation of a camera's noise, levels."""

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
    "rotated by 90°": (*PART_REASONS, reasons.PROPORTIONS),
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
    """Prints two tables with a row for each kind of photograph: the rejected ones, and their reasons."""
    parser = argparse.ArgumentParser(description="Photographs unlike those of the training.")
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help="folder with one folder for each data set")
    add("--sets", nargs="+", default=[], metavar="NAME", help="default: all that can be measured")
    add("--altered", type=int, default=10, help="good photographs of a fold; default: %(default)s")
    add("--encoder-weights", metavar="FILE", help="of MobileNet, as for fit; default: no encoder")
    add("--rate", type=float, default=FALSE_ALARM_RATE, help="of false alarms; default: %(default)s")
    add("--seed", type=int, default=0, help="default: %(default)s")
    options = parser.parse_args(arguments)
    sets, errors = list_sets(options.data, options.sets)
    for name, error in errors.items():
        print(f"ignored: {name}: {error}", file=sys.stderr)
    if not sets:
        raise ConfigError(f"No data set of '{options.data}' can be measured. Expected one with a test split.")
    infer = None if options.encoder_weights is None else load_surface_network(options.encoder_weights)
    measured = [MeasuredSet(source, infer) for source in sets]
    how = options.altered, options.rate, options.seed
    all_reasons = [measure_reasons(each, measured, *how) for each in measured]
    names = [each.name for each in measured]
    print(tabulate("rejected, %", names, [rejected_by_kind(each) for each in all_reasons]))
    print()
    print(tabulate("expected reason, %", names, [expected_by_kind(each) for each in all_reasons]))
    print(
        f"\nStated rate of false alarms: {100 * options.rate:g} %. "
        f"Check of a photograph of 512 × 512 px in colour: {measure_ms():.1f} ms."
    )


def rejected_by_kind(by_kind: Reasons) -> dict[str, list[bool]]:
    """Returns which photographs of each kind are rejected."""
    return {kind: [reason is not None for reason in each] for kind, each in by_kind.items()}


def expected_by_kind(by_kind: Reasons) -> dict[str, list[bool]]:
    """Returns which rejected photographs of each kind, and of all, have a reason in `EXPECTED`."""
    hits = {
        kind: [reason in expected for reason in by_kind.get(kind, []) if reason is not None]
        for kind, expected in EXPECTED.items()
    }
    return {**hits, "all": [hit for of_kind in hits.values() for hit in of_kind]}


def tabulate(heading: str, names: Sequence[str], all_hits: Sequence[dict[str, list[bool]]]) -> str:
    """Returns a table of percentages, with a row for each kind and a column for each data set."""
    kinds = dict.fromkeys(kind for of_kinds in all_hits for kind in of_kinds)
    rows = []
    for kind in kinds:
        of_sets = [of_kinds.get(kind, []) for of_kinds in all_hits]
        every = [hit for hits in of_sets for hit in hits]
        rows.append([kind, *map(_percent, of_sets), _percent(every), str(len(every))])
    return markdown_table([heading, *names, "all", "photographs"], rows)


def _percent(hits: Sequence[bool]) -> str:
    return f"{100 * float(np.mean(hits)):.3g}" if hits else "–"


class MeasuredSet:
    """The photographs of a data set, with the measures of each as the network's input.

    Attributes:
        config: Scales to the median proportions; the shorter side becomes 256 px.
        infer: Returns the measure `surface`; None: without it.
    """

    def __init__(self, source: SuiteSet, infer: Infer | None) -> None:
        self.infer = infer
        self.name = source.name
        self.items = list(source.dataset.items)
        self.images = [read(item, white_level=65535).image for item in self.items]
        proportion = median(image.shape[0] / image.shape[1] for image in self.images)
        height, width = (round(SIDE * max(value, 1) / 8) * 8 for value in (proportion, 1 / proportion))
        self.config = InputConfig(policy="resize", height=height, width=width)
        self.coloured = any(bool(np.ptp(image, axis=-1).max() > 30) for image in self.images[:20])
        self.measured = [measure_with(infer, self.prepare(image)) for image in self.images]

    def prepare(self, image: Image) -> Image:
        """Returns the network's input."""
        return prepare_image(image, self.config, CHANNELS)

    def train(self, train: Sequence[int], rate: float) -> TrainingPhotographs:
        """Returns the limits of the photographs with the indices `train`."""
        trained = TrainingPhotographs.of(((*self.images[index].shape[:2],) for index in train), [])
        altered = [self.prepare(self.images[index]) for index in pick_evenly(train, MAX_ALTERED)]
        groups = [self.items[index].group for index in train]
        blur = measure_blur(altered, partial(measure_with, self.infer))
        limits = choose_limits([self.measured[index] for index in train], groups, blur, rate)
        if trained is None or limits is None:
            raise ConfigError(f"{self.name} has too few photographs. Leave it out of --sets.")
        limits = limits.model_copy(update={"alterations": measure_alterations(altered)})
        return trained.model_copy(update={"limits": limits})

    def compare(self, trained: TrainingPhotographs, image: Image) -> str | None:
        """Returns why a photograph is rejected; None if it is not."""
        size, prepared = (image.shape[0], image.shape[1]), self.prepare(image)
        reason = compare_with(trained, self.config, size, prepared).reason
        if reason is not None or self.infer is None or trained.limits is None:
            return reason
        measured = measure_with(self.infer, prepared)
        return reasons.find_reason(trained.limits, measured, trained.limits.distances(measured))


def measure_reasons(
    own: MeasuredSet, sets: Sequence[MeasuredSet], altered: int, rate: float, seed: int
) -> Reasons:
    """Returns for each kind of photograph the reasons why they are rejected."""
    by_kind: defaultdict[str, list[str | None]] = defaultdict(list)
    random = np.random.default_rng(seed)
    groups = [item.group for item in own.items]
    parts = random.permutation(sorted(set(groups)))
    others = [image for each in sets if each is not own for image in each.images]
    for fold in range(FOLDS):
        held = set(parts[fold::FOLDS].tolist())
        train = [index for index, group in enumerate(groups) if group not in held]
        trained = own.train(train, rate)
        good: list[int] = []
        for index in (index for index, group in enumerate(groups) if group in held):
            defective = own.items[index].label > 0
            by_kind["defective" if defective else "good"].append(own.compare(trained, own.images[index]))
            good += [] if defective else [index]
        for index in random.permutation(good)[:altered].tolist():
            for kind, image in alter(own.images[index], others, random, coloured=own.coloured):
                by_kind[kind].append(own.compare(trained, image))
    return by_kind


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


def load_surface_network(weights: str) -> Infer:
    """Returns a function that runs a network whose memory is not built: the mean patch does not depend on it.

    Raises:
        ConfigError: If the weights are missing or do not fit MobileNet.
    """
    import_tensorflow()
    from segdec.engines.tensorflow import NetworkEngine
    from training.optimization.pretrained import build_initial_network, load_pretrained
    from training.surface_patches import set_projection

    network = {"preset": "mobilenet", "input_channels": CHANNELS, "heads": 0, "memory": 1}
    config = ExperimentConfig.model_validate({"encoder_weights": weights, "network": network})
    built = build_initial_network(config, load_pretrained(config))
    set_projection(built.memory, np.random.default_rng(0))
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
