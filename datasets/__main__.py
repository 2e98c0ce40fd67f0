"""Data sets from the command line.

python -m datasets toy OUT [--count N] [--size S] [--classes 2|4] [--seed K] [--overwrite]
python -m datasets inspect NAME ROOT [--splits FILE] [--out contact_sheet.png]
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from datasets.contact_sheet import contact_sheet
from datasets.inspection import describe, inspect
from datasets.layouts import LAYOUTS, load_dataset
from datasets.sample import Dataset
from datasets.toy import CLASSES, write_toy
from segdec.errors import DatasetError
from segdec.images import write_png
from segdec.terminal import clean_exit

Item = TypeVar("Item")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that `arguments` name; leave with 2 after an error a user can repair."""
    options = _parser().parse_args(arguments)
    with clean_exit(extra="train"):
        options.command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m datasets", description="Make and inspect data sets.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_toy(commands.add_parser("toy", help="write the made-up data set"))
    _add_inspect(commands.add_parser("inspect", help="print what a data set holds, draw a contact sheet"))
    return parser


def _add_toy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to make")
    parser.add_argument("--count", type=int, default=400, help="number of samples (default: %(default)s)")
    parser.add_argument(
        "--size", type=int, default=128, help="height and width, pixels (default: %(default)s)"
    )
    parser.add_argument(
        "--classes", type=int, default=2, choices=sorted(CLASSES), help="default: %(default)s"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="another seed, another set (default: %(default)s)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a toy set that lies at OUT")
    parser.set_defaults(command=_toy)


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("layout", metavar="NAME", help=f"layout: {', '.join(LAYOUTS)}")
    parser.add_argument("root", type=Path, metavar="ROOT", help="folder of the data set")
    parser.add_argument("--splits", type=Path, metavar="FILE", help="split file, instead of the layout's own")
    parser.add_argument(
        "--out", type=Path, default=Path("contact_sheet.png"), help="PNG to write (default: %(default)s)"
    )
    parser.set_defaults(command=_inspect)


def _toy(options: argparse.Namespace) -> None:
    write_toy(
        options.out,
        options.count,
        size=options.size,
        classes=options.classes,
        seed=options.seed,
        overwrite=options.overwrite,
        progress=lambda numbers: _progress(numbers, "toy set"),
    )
    print(f"{options.count} images in {options.out}")


def _inspect(options: argparse.Namespace) -> None:
    if not options.out.parent.is_dir():
        raise DatasetError(f"The folder {options.out.parent} does not exist. Make it, or give another --out.")
    dataset = load_dataset(options.layout, options.root, options.splits)
    findings = inspect(dataset, lambda records: _progress(records, "reading"))
    print(describe(dataset, findings))
    _write_sheet(options.out, dataset)
    print(f"\ncontact sheet: {options.out}")


def _write_sheet(path: Path, dataset: Dataset) -> None:
    try:
        write_png(path, contact_sheet(dataset))
    except OSError as error:
        raise DatasetError(f"The contact sheet cannot be written ({error}). Give another --out.") from error


def _progress(items: Iterable[Item], what: str) -> Iterable[Item]:
    from tqdm import tqdm

    bar: Iterable[Item] = tqdm(items, desc=what, unit="image", disable=None)
    return bar


if __name__ == "__main__":
    main()
