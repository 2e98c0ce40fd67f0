"""Data sets from the command line.

python -m datasets toy OUT [--count N] [--size S] [--classes 2|4] [--seed K] [--overwrite]
python -m datasets inspect NAME ROOT [--splits FILE] [--out contact_sheet.png] [--white-level N]
python -m datasets pack NAME ROOT OUT [--splits FILE] [--shard-mb 128] [--overwrite]
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from datasets.contact_sheet import contact_sheet
from datasets.inspection import describe, inspect
from datasets.layouts import LAYOUTS, SHARDS, load_dataset
from datasets.packing import DEFAULT_SHARD_MB, pack
from datasets.toy import CLASSES, write_toy
from segdec.errors import DatasetError
from segdec.images import write_png
from segdec.terminal import clean_exit, quiet_tensorflow

Item = TypeVar("Item")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that `arguments` name; leave with 2 after an error a user can repair."""
    options = _parser().parse_args(arguments)
    with clean_exit(extra="train"):
        options.command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m datasets", description="Make, inspect, pack data sets.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_toy(commands.add_parser("toy", help="write the made-up data set"))
    _add_inspect(commands.add_parser("inspect", help="print what a data set holds, draw a contact sheet"))
    _add_pack(commands.add_parser("pack", help="write a data set as TFRecord shards"))
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


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("layout", metavar="NAME", help=f"layout: {', '.join(LAYOUTS)}")
    parser.add_argument("root", metavar="ROOT", help="folder of the data set; of shards also a URL")
    parser.add_argument("--splits", type=Path, metavar="FILE", help="split file, instead of the layout's own")


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("contact_sheet.png"), help="PNG to write (default: %(default)s)"
    )
    parser.add_argument(
        "--white-level",
        type=_white_level,
        metavar="N",
        help="value of 16-bit photographs that is shown white, as input.white_level of a training",
    )
    parser.set_defaults(command=_inspect)


def _white_level(text: str) -> int:
    if not text.isdecimal() or not 256 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is no white level. Expected a number from 256 to 65535.")
    return int(text)


def _add_pack(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    parser.add_argument("out", metavar="OUT", help="folder to make, or a URL such as gs://bucket/parts")
    parser.add_argument(
        "--shard-mb",
        type=int,
        default=DEFAULT_SHARD_MB,
        help="about the size of a shard, MB (default: %(default)s)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace shards that lie at OUT")
    parser.set_defaults(command=_pack)


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
    if options.layout == SHARDS:
        quiet_tensorflow()
    dataset = load_dataset(options.layout, options.root, options.splits)
    findings = inspect(
        dataset, lambda records: _progress(records, "reading"), white_level=options.white_level
    )
    print(describe(dataset, findings))
    _write_sheet(options.out, contact_sheet(dataset, white_level=options.white_level))
    print(f"\ncontact sheet: {options.out}")


def _pack(options: argparse.Namespace) -> None:
    from tqdm import tqdm

    quiet_tensorflow()
    dataset = load_dataset(options.layout, options.root, options.splits)
    packed = [record for record in dataset.records if record.split is not None]
    with tqdm(total=len(packed), desc="packing", unit="image", disable=None) as bar:
        index = pack(
            dataset,
            options.out,
            shard_mb=options.shard_mb,
            overwrite=options.overwrite,
            advance=bar.update,
        )
    size_mb = sum(shard.bytes for shard in index.shards) / 1e6
    print(
        f"{len(packed)} photographs in {len(index.shards)} shards ({size_mb:.1f} MB) in {options.out}; "
        f"{len(dataset.records) - len(packed)} without a split left out"
    )


def _write_sheet(path: Path, sheet: NDArray[np.uint8]) -> None:
    try:
        write_png(path, sheet)
    except OSError as error:
        raise DatasetError(f"The contact sheet cannot be written ({error}). Give another --out.") from error


def _progress(items: Iterable[Item], what: str) -> Iterable[Item]:
    from tqdm import tqdm

    bar: Iterable[Item] = tqdm(items, desc=what, unit="image", disable=None)
    return bar


if __name__ == "__main__":
    main()
