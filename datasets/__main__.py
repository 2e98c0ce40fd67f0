"""Data sets from the command line.

python -m datasets toy OUT [--count N] [--size S] [--classes 2|4] [--seed K] [--overwrite]
python -m datasets inspect NAME ROOT [--splits FILE] [--out contact_sheet.png] [--twins FILE]
python -m datasets split NAME ROOT OUT [--folds K] [--val 0.2] [--test 0.2] [--group-twins]
python -m datasets supervision NAME ROOT PUBLISHED OUT [--part K] [--splits FILE]
python -m datasets pack NAME ROOT OUT [--splits FILE] [--shard-mb 128] [--overwrite]

Those that read a set take [--mask-threshold N] and [--max-pixels N]; split and pack [--skip-broken];
inspect and pack [--allow-leak NAME]. inspect also takes [--white-level N], split [--seed 0].
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from datasets import commands
from datasets.layouts.toy import CLASSES
from datasets.loading import LAYOUTS
from datasets.sharding.packing import DEFAULT_SHARD_MB
from datasets.splitting import TEST_FRACTION, VAL_FRACTION
from segdec.images import DEFAULT_MAX_PIXELS
from segdec.runtime.cli import clean_exit, parse_pixel_limit, raise_pixel_limit, white_level


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command that `arguments` name; leaves with 2 after an error a user can repair."""
    options = _parser().parse_args(arguments)
    with clean_exit(group="train"):
        if "max_pixels" in options:
            raise_pixel_limit(options.max_pixels)
        options.command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m datasets", description="Make, inspect, split, pack data sets."
    )
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_toy(added.add_parser("toy", help="write the made-up data set"))
    _add_inspect(added.add_parser("inspect", help="print what a data set holds, draw a contact sheet"))
    _add_split(added.add_parser("split", help="write split files by group, or folds"))
    _add_supervision(added.add_parser("supervision", help="read a published split of mixed supervision"))
    _add_pack(added.add_parser("pack", help="write a data set as TFRecord shards"))
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
    parser.set_defaults(command=commands.toy)


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("layout", metavar="NAME", help=f"layout: {', '.join(LAYOUTS)}")
    parser.add_argument("root", metavar="ROOT", help="folder of the data set; of shards also a URL")
    parser.add_argument(
        "--mask-threshold",
        type=int,
        choices=range(255),
        metavar="N",
        help="a mask pixel shows a defect where its value is above this, as data.mask_threshold says",
    )
    parser.add_argument(
        "--max-pixels",
        type=parse_pixel_limit,
        default=DEFAULT_MAX_PIXELS,
        metavar="N",
        help="largest photograph, height × width, as data.max_pixels says (default: %(default)s)",
    )


def _add_splits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--splits", type=Path, metavar="FILE", help="split file, instead of the layout's own")
    parser.add_argument(
        "--allow-leak",
        action="append",
        default=[],
        metavar="NAME",
        help="photograph or group that may occur, or have a twin, in two splits; may be given several times",
    )


def _add_skip_broken(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--skip-broken", action="store_true", help="leave out what cannot be used, and list it"
    )


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    _add_splits(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("contact_sheet.png"), help="PNG to write (default: %(default)s)"
    )
    parser.add_argument(
        "--white-level",
        type=white_level,
        metavar="N",
        help="value of 16-bit photographs that is shown white, as input.white_level of a training",
    )
    parser.add_argument(
        "--twins", type=Path, metavar="FILE", help="text file to write: all near twins in different splits"
    )
    parser.set_defaults(command=commands.inspect)


def _add_split(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    _add_skip_broken(parser)
    parser.add_argument(
        "out", type=Path, metavar="OUT", help="file to write; with --folds a folder for fold_0.txt and so on"
    )
    parser.add_argument("--folds", type=int, metavar="K", help="test each of K parts in turn")
    parser.add_argument(
        "--val", type=float, default=VAL_FRACTION, help="share that validates (default: %(default)s)"
    )
    parser.add_argument(
        "--test", type=float, help=f"share that tests, instead of --folds (default: {TEST_FRACTION})"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="another seed, another split (default: %(default)s)"
    )
    parser.add_argument("--group-twins", action="store_true", help="keep near twins in one split, too")
    parser.set_defaults(command=commands.split)


def _add_supervision(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    parser.add_argument(
        "published", type=Path, metavar="PUBLISHED", help="file of the papers' authors, such as split_16.pyb"
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="supervision file to write")
    parser.add_argument(
        "--part", type=int, metavar="K", help="fold or class, from 0, where the published file holds several"
    )
    parser.add_argument("--splits", type=Path, metavar="FILE", help="also write this split file")
    parser.set_defaults(command=commands.supervision)


def _add_pack(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    _add_splits(parser)
    _add_skip_broken(parser)
    parser.add_argument("out", metavar="OUT", help="folder to make, or a URL such as gs://bucket/parts")
    parser.add_argument(
        "--shard-mb",
        type=int,
        default=DEFAULT_SHARD_MB,
        help="about the size of a shard, MB (default: %(default)s)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace shards that lie at OUT")
    parser.set_defaults(command=commands.pack)


if __name__ == "__main__":
    main()
