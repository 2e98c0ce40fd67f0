"""Clicks until a mask of a defect is good: the click segmentation of the service, beside GrabCut alone.

    python -m benchmarks.clicks DATA --write docs/labelling.md

DATA holds one folder for each data set, as for `benchmarks.suite`. A simulated person clicks as in the
literature (Xu et al., Deep Interactive Object Selection, CVPR 2016; Sofiiuk et al., RITM, 2021): first into
the middle of the largest defect, then always into the middle of the largest wrong region. NoC@80 and NoC@85
are the mean numbers of clicks until the intersection over union is 0.80 and 0.85; 20 if it never is.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean

import cv2
import numpy as np
from numpy.typing import NDArray

from api.labelling.clicks import Click
from api.labelling.pixel_features import Floats, describe_pixels
from api.labelling.sam_model import SamModel
from api.labelling.sam_segmenter import SamSegmenter
from api.labelling.segmenter import ClickSegmenter
from benchmarks.harness import describe_machine, markdown_table, wrap_lines
from benchmarks.suite.table import add_write_option, print_and_write
from datasets.detection import detect_layout
from datasets.loading import load_dataset
from datasets.reading import read
from datasets.sample import Sample
from segdec.errors import ConfigError
from segdec.runtime.cli import clean_exit, parse_seed
from segdec.runtime.threads import available_cores, limit_opencv_threads

SETS = ("kolektorsdd", "dagm_class1", "magnetic_tile", "capsule", "leather")
MARKER = "<!-- clicks -->"
MAX_CLICKS = 20
TARGETS = (0.80, 0.85)
SHOWN_CLICKS = (1, 3, 5)

GRABCUT_PX = 40_000
"""GrabCut works on a photograph of at most this size: at full size a click takes seconds."""
GRABCUT_ROUNDS = 2
GRABCUT_RADIUS = 3
"""Radius of the disc around a click that is certain for GrabCut, px of the reduced photograph."""

SMALL_PX = 40
"""Length of the small defect of the synthetic photograph."""

PADDING = 32
"""Sides of photographs are padded to multiples of this for the encoder, px."""
COMPONENTS = 12
"""Principal components of the encoder's features of each stride."""

Image = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Segment = Callable[[Sequence[Click]], Bools]
"""Clicks → mask [H, W]."""
Prepare = Callable[[Image], Segment]
"""Opens a photograph."""


@dataclass(frozen=True)
class ClickSimulation:
    """What happened with one photograph: IoU after each of 20 clicks, CPU time."""

    ious: Sequence[float]
    click_ms: Sequence[float]
    preparation_ms: float

    def count_clicks(self, target: float) -> int:
        """Returns the number of clicks until the IoU reaches the target; 20 if it never does."""
        return next((number for number, iou in enumerate(self.ious, 1) if iou >= target), MAX_CLICKS)


# === The simulated person ===


def choose_click(truth: Bools, mask: Bools) -> Click | None:
    """Returns the next click: the innermost pixel of the largest wrong region; None if the mask is right."""
    regions = [region for wrong in (truth & ~mask, mask & ~truth) if (region := _largest(wrong)) is not None]
    if not regions:
        return None
    region = max(regions, key=np.count_nonzero)
    depth = cv2.distanceTransform(np.pad(region, 1).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    y, x = np.unravel_index(int(depth[1:-1, 1:-1].argmax()), region.shape)
    return Click(int(x), int(y), bool(truth[y, x]))


def simulate(prepare: Prepare, image: Image, truth: Bools, target: float = max(TARGETS)) -> ClickSimulation:
    """Clicks until the mask reaches the target, at most 20 times."""
    started = time.process_time()
    segment = prepare(image)
    preparation_ms = 1000 * (time.process_time() - started)
    mask, clicks, ious, click_ms = np.zeros_like(truth), list[Click](), list[float](), list[float]()
    while len(ious) < MAX_CLICKS and (click := choose_click(truth, mask)) is not None:
        clicks.append(click)
        started = time.process_time()
        mask = segment(clicks)
        click_ms.append(1000 * (time.process_time() - started))
        ious.append(measure_iou(truth, mask))
        if len(ious) >= max(SHOWN_CLICKS) and max(ious) >= target:
            break
    ious += [ious[-1]] * (MAX_CLICKS - len(ious))
    return ClickSimulation(ious, click_ms, preparation_ms)


def measure_iou(truth: Bools, mask: Bools) -> float:
    """Returns the intersection over union of two masks of which one is not empty."""
    return float(np.count_nonzero(truth & mask) / np.count_nonzero(truth | mask))


def _largest(mask: Bools) -> Bools | None:
    """The largest connected region; None if there is none."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    return labels == 1 + int(stats[1:, cv2.CC_STAT_AREA].argmax()) if count > 1 else None


# === What is measured ===


def prepare_clicks(image: Image, describe: Callable[[Image], Floats] = describe_pixels) -> Segment:
    """Opens a photograph with the code of the service."""
    segmenter = ClickSegmenter(image, describe=describe)
    return lambda clicks: segmenter.segment(clicks) > 0


def prepare_sam(model: SamModel, image: Image) -> Segment:
    """Opens a photograph with SAM 2.1, as the service does if it has the files."""
    segmenter = SamSegmenter(model, image)
    return lambda clicks: segmenter.segment(clicks) > 0


def prepare_grabcut(image: Image) -> Segment:
    """Opens a photograph for GrabCut: clicks are certain, other pixels are good surface at first."""
    height, width = image.shape[:2]
    factor = min(1.0, (GRABCUT_PX / (height * width)) ** 0.5)
    size = max(1, round(width * factor)), max(1, round(height * factor))
    colour = np.ascontiguousarray(np.broadcast_to(image.reshape(height, width, -1), (height, width, 3)))
    reduced = cv2.resize(colour, size, interpolation=cv2.INTER_AREA)

    def segment(clicks: Sequence[Click]) -> Bools:
        cv2.setRNGSeed(0)
        known = np.full(reduced.shape[:2], cv2.GC_PR_BGD, np.uint8)
        for click in clicks:
            place = int(click.x * factor), int(click.y * factor)
            cv2.circle(known, place, GRABCUT_RADIUS, cv2.GC_FGD if click.is_defect else cv2.GC_BGD, -1)
        if not {cv2.GC_FGD, cv2.GC_PR_FGD} & set(np.unique(known).tolist()):
            return np.zeros((height, width), bool)
        models = np.zeros((1, 65)), np.zeros((1, 65))
        unused = (0, 0, 1, 1)  # the rectangle is for another mode
        cv2.grabCut(reduced, known, unused, *models, GRABCUT_ROUNDS, cv2.GC_INIT_WITH_MASK)
        found = np.isin(known, (cv2.GC_FGD, cv2.GC_PR_FGD)).astype(np.uint8)
        _, labels = cv2.connectedComponents(
            cv2.resize(found, (width, height), interpolation=cv2.INTER_NEAREST)
        )
        clicked = {int(labels[click.y, click.x]) for click in clicks if click.is_defect}
        return np.isin(labels, list(clicked - {0}))

    return segment


def load_encoder_features(name: str, weights: str) -> Callable[[Image], Floats]:
    """Returns a function like `describe_pixels` that adds the features of a frozen encoder."""
    from benchmarks.suite.features import load_encoder

    encode = load_encoder(name, weights)

    def describe(image: Image) -> Floats:
        height, width = image.shape[:2]
        colour = np.broadcast_to(image.reshape(height, width, -1), (height, width, 3)).astype(np.float32)
        padded = np.pad(colour, ((0, -height % PADDING), (0, -width % PADDING), (0, 0)), mode="symmetric")
        parts = [describe_pixels(image)]
        for feature in encode(padded[None]):
            reduced = _principal(np.asarray(feature[0], np.float32))
            enlarged = np.asarray(cv2.resize(reduced, padded.shape[1::-1]), np.float32)
            parts.append(enlarged[:height, :width])
        return np.concatenate(parts, axis=-1)

    return describe


def _principal(features: Floats) -> Floats:
    """The first principal components, [H, W, `COMPONENTS`]."""
    height, width, depth = features.shape
    flat = features.reshape(-1, depth) - features.reshape(-1, depth).mean(axis=0)
    _, vectors = np.linalg.eigh(flat.T @ flat)
    return np.asarray(flat @ vectors[:, -COMPONENTS:], np.float32).reshape(height, width, -1)


# === A large photograph ===


def draw_large_photograph(megapixels: float) -> tuple[Image, dict[str, Bools]]:
    """Returns a synthetic photograph, 4:3, uint8 [H, W, 3], and the masks of its defects by their names."""
    height, width = (max(400, round((megapixels * 1e6 * ratio) ** 0.5)) for ratio in (3 / 4, 4 / 3))
    noise = np.random.default_rng(0).normal(0, 6, (512, 512)).astype(np.float32)
    tile = np.clip(120 + 2 * cv2.GaussianBlur(noise, (0, 0), 1.0), 0, 255).astype(np.uint8)
    grey = np.tile(tile, (-(-height // 512), -(-width // 512)))[:height, :width]
    masks = dict[str, Bools]()
    for name, x, length in (("small", width * 4 // 5, SMALL_PX), ("large", width * 2 // 5, height // 2)):
        drawn = np.zeros((height, width), np.uint8)
        cv2.ellipse(drawn, (x, height // 2), (length // 2, length // 3), 20, 0, 360, 1, -1)
        masks[name] = drawn > 0
        grey[masks[name]] = 60
    return np.repeat(grey[..., None], 3, axis=2), masks


def describe_large_photograph(megapixels: float) -> str:
    """Returns sentences about the processor time of clicks on a large synthetic photograph."""
    image, masks = draw_large_photograph(megapixels)
    parts, preparations = [], list[float]()
    for name, mask in masks.items():
        simulation = simulate(prepare_clicks, image, mask, target=0)  # as many clicks as `SHOWN_CLICKS`
        first, *others = simulation.click_ms
        later = f", a later one {np.median(others):.0f} ms" if others else ""
        parts.append(f"the first click on a {name} defect {first:.0f} ms{later}")
        preparations.append(simulation.preparation_ms)
    return (
        f"Processor time on a synthetic colour photograph of {megapixels:g} megapixels: {'; '.join(parts)}; "
        f"to open it {np.median(preparations):.0f} ms. The defects are {SMALL_PX} and {image.shape[0] // 2} "
        "px long."
    )


# === The table ===


def summarize(simulations: Sequence[ClickSimulation]) -> list[float]:
    """Returns NoC and share not reached of each target, mean IoU after the clicks shown, and times in ms."""
    counts = [mean(simulation.count_clicks(target) for simulation in simulations) for target in TARGETS]
    missed = [mean(max(simulation.ious) < target for simulation in simulations) for target in TARGETS]
    ious = [mean(simulation.ious[number - 1] for simulation in simulations) for number in SHOWN_CLICKS]
    click_ms = [ms for simulation in simulations for ms in simulation.click_ms]
    times = [
        *np.percentile(click_ms, [50, 95]),
        np.median([simulation.preparation_ms for simulation in simulations]),
    ]
    return [*counts, *missed, *ious, *map(float, times)]


def format_row(name: str, method: str, figures: Sequence[float]) -> list[str]:
    """Returns the cells of a row of the table."""
    counts, missed, ious, times = figures[:2], figures[2:4], figures[4:7], figures[7:]
    return [
        name,
        method,
        *(f"{value:.1f}" for value in counts),
        *(f"{value:.0%}".replace("%", " %") for value in missed),
        *(f"{value:.2f}" for value in ious),
        *(f"{value:.0f}" for value in times),
    ]


def load_samples(root: Path, number: int, seed: int) -> list[Sample]:
    """Reads at most `number` photographs with masks of a data set, drawn by the seed.

    Raises:
        ConfigError: If there is none.
    """
    items = load_dataset(detect_layout(root), root).items
    masked = sorted((one for one in items if one.label and one.mask_file), key=lambda one: one.name)
    drawn = random.Random(seed).sample(masked, min(number, len(masked)))
    samples = [sample for sample in map(read, drawn) if sample.mask is not None and sample.mask.any()]
    if not samples:
        raise ConfigError(f"'{root}' has no defects with masks. Expected some: choose other --sets.")
    return samples


def measure(options: argparse.Namespace) -> str:
    """Returns the table."""
    methods: dict[str, Prepare] = {"GrabCut alone": prepare_grabcut, "clicks": prepare_clicks}
    if options.encoder:
        describe = load_encoder_features(options.encoder, options.encoder_weights)
        methods[f"clicks, {options.encoder}"] = lambda image: prepare_clicks(image, describe)
    if options.sam:
        methods["SAM 2.1"] = partial(prepare_sam, SamModel(options.sam, available_cores()))
    numbers = "NoC@80", "NoC@85", "never 80", "never 85", *(f"IoU {number}" for number in SHOWN_CLICKS)
    heading = ("set", "method", *numbers, "ms", "ms, 95 %", "ms to open")
    rows, means = [], dict[str, list[list[float]]]()
    for name in options.sets:
        samples = load_samples(options.data / name, options.photographs, options.seed)
        for method, prepare in methods.items():
            simulations = [simulate(prepare, one.image, np.asarray(one.mask) > 0) for one in samples]
            means.setdefault(method, []).append(summarize(simulations))
            rows.append(format_row(f"{name} ({len(samples)})", method, means[method][-1]))
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    for method, figures in means.items():
        rows.append(format_row("mean", method, np.mean(figures, axis=0).tolist()))
    return f"{markdown_table(heading, rows)}\n\n{_describe(options)}"


def _describe(options: argparse.Namespace) -> str:
    machine: Mapping[str, str] = describe_machine()
    text = (
        f"At most {options.photographs} photographs of a set, seed {options.seed}; {machine['processor']}, "
        f"{machine['date']}. never 80: share whose IoU is below 0.80 after all {MAX_CLICKS} clicks; IoU 3: "
        "mean after 3 clicks; ms: processor time of a click, median and 95th percentile, and of opening a "
        f"photograph. GrabCut works on photographs of at most {GRABCUT_PX // 1000},000 pixels."
    )
    if options.megapixels is not None:
        text += f" {describe_large_photograph(options.megapixels)}"
    return wrap_lines(text)


def _parse_megapixels(text: str) -> float:
    megapixels = float(text) if text.replace(".", "", 1).isdecimal() else 0.0
    if not 0.1 <= megapixels <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} arrived. Expected megapixels, from 0.1 to 100")
    return megapixels


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints the table and writes it."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.clicks", description=(__doc__ or "").split("\n")[0]
    )
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help="folder with one folder for each data set")
    add("--sets", nargs="+", default=list(SETS), metavar="NAME", help=f"default: {' '.join(SETS)}")
    add("--photographs", type=int, default=16, metavar="N", help="of each set (default: %(default)s)")
    add("--seed", type=parse_seed, default=0, metavar="N")
    add(
        "--encoder",
        metavar="NAME",
        help="also measure with the features of an encoder, for example mobilenet",
    )
    add("--encoder-weights", default="imagenet", metavar="FILE")
    add("--sam", type=Path, metavar="FOLDER", help="also measure SAM 2.1 with the ONNX files of a folder")
    add(
        "--megapixels",
        type=_parse_megapixels,
        metavar="N",
        help="also measure the time of clicks on a synthetic photograph of this size, for example 60",
    )
    add_write_option(parser, MARKER)
    options = parser.parse_args(arguments)
    limit_opencv_threads()  # as the service does
    with clean_exit(group="train"):
        print_and_write(lambda: measure(options), options.write, MARKER)


if __name__ == "__main__":
    main()
