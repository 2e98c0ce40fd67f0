"""Predicts image files from the command line: `python -m segdec predict IMAGE… --model FOLDER`."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from segdec import __version__
from segdec.artifact import read_manifest
from segdec.errors import ConfigError, ImageError
from segdec.images import Photograph, read_image, write_png
from segdec.overlay import draw_overlay
from segdec.postprocessing import Prediction
from segdec.predictor import Predictor
from segdec.terminal import clean_exit, quiet_tensorflow

HEADINGS = ("image", "label", "score", "threshold", "regions")
EXIT_SOME_FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 0, or 1 when some of the images could not be predicted.

    Raises:
        SystemExit: With 2 on a wrong argument, an unusable model or output folder.
    """
    options = build_parser().parse_args(arguments)
    with clean_exit():
        return predict(options.images, options.model, options.out, options.threshold)


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m segdec", description="Find defects in photographs.")
    parser.add_argument("--version", action="version", version=f"segdec {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "predict", help="label images, write masks and overlays", description="Label images."
    )
    command.add_argument("images", nargs="+", type=Path, metavar="IMAGE", help="image files")
    command.add_argument("--model", type=Path, required=True, metavar="FOLDER", help="artifact")
    command.add_argument(
        "--out", type=Path, metavar="DIR", help="write NAME_mask.png and NAME_overlay.png there"
    )
    command.add_argument(
        "--threshold", type=float, metavar="T", help="score from which an image is defective, 0…1"
    )
    return parser


def predict(images: Sequence[Path], model: Path, out: Path | None, threshold: float | None) -> int:
    """Predicts each of `images`, prints a table row each and writes its pictures to `out`."""
    images = list(dict.fromkeys(images))
    if out is not None:
        _prepare_output(out, images)
    predictor = _load(model, threshold)
    stems = output_stems(images)
    widths = _column_widths(images, predictor.config.classes)
    print(_row(HEADINGS, widths))
    failed = 0
    for path, stem in zip(images, stems, strict=True):
        try:
            photograph = read_image(path)
            answer = predictor.predict([photograph.pixels], threshold=threshold)[0]
        except ImageError as error:
            failed += 1
            _report_failure(path, error, widths)
            continue
        _report(path, photograph, answer, widths)
        if out is not None:
            _write(out, stem, photograph, answer)
    return EXIT_SOME_FAILED if failed else 0


def output_stems(images: Sequence[Path]) -> list[str]:
    """A file name without suffix for each image, unique whatever folders the images come from.

    An image whose stem is its own keeps it; others get their folder's name in front and, where that
    does not tell them apart, a number behind.
    """
    stems = Counter(path.stem.lower() for path in images)
    taken = {stem for stem, count in stems.items() if count == 1}
    names = []
    for path in images:
        name = path.stem
        if stems[name.lower()] > 1:
            name = base = f"{path.absolute().parent.name}_{path.stem}"
            number = 1
            while name.lower() in taken:
                number += 1
                name = f"{base}-{number}"
            taken.add(name.lower())
        names.append(name)
    return names


def _prepare_output(out: Path, images: Sequence[Path]) -> None:
    """Creates `out`; a folder of the photographs themselves is refused, their masks may lie there."""
    if any(path.absolute().parent.resolve() == out.resolve() for path in images):
        raise ConfigError(
            f"--out {out} holds the images themselves. Expected another folder; name a new one."
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"--out {out} cannot be created: {error.strerror}. Choose another folder."
        ) from error


def _load(model: Path, threshold: float | None) -> Predictor:
    if threshold is not None and not 0.0 <= threshold <= 1.0:
        raise ConfigError(f"--threshold {threshold} is no score. Expected a number from 0 to 1.")
    read_manifest(model)  # a wrong folder is refused before the slow import
    quiet_tensorflow()
    return Predictor.load(model)


def _write(out: Path, stem: str, photograph: Photograph, answer: Prediction) -> None:
    caption = f"{answer.label}  score {answer.score:.3f}  threshold {answer.threshold:.3f}"
    try:
        write_png(out / f"{stem}_mask.png", answer.mask)
        write_png(out / f"{stem}_overlay.png", draw_overlay(photograph.pixels, answer.mask, caption=caption))
    except OSError as error:
        raise ConfigError(
            f"--out {out} cannot be written: {error.strerror}. Choose another folder."
        ) from error


# === Table ===


def _column_widths(images: Sequence[Path], classes: Sequence[str]) -> tuple[int, ...]:
    longest = (max(map(len, map(str, images))), max(map(len, [*classes, "error"])), 0, 0, 0)
    return tuple(max(len(heading), width) for heading, width in zip(HEADINGS, longest, strict=True))


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Text to the left, numbers to the right."""
    left = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
    right = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
    return "  ".join([*left, *right]).rstrip()


def _report(path: Path, photograph: Photograph, answer: Prediction, widths: Sequence[int]) -> None:
    numbers = (f"{answer.score:.3f}", f"{answer.threshold:.3f}", str(len(answer.regions)))
    print(_row((str(path), answer.label, *numbers), widths), flush=True)
    for warning in photograph.warnings:
        print(f"warning: {path}: {warning}", file=sys.stderr)


def _report_failure(path: Path, error: ImageError, widths: Sequence[int]) -> None:
    print(_row((str(path), "error", "-", "-", "-"), widths), flush=True)
    message = str(error)
    print(f"error: {message if str(path) in message else f'{path}: {message}'}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
