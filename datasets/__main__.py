"""Data sets from the command line; `python -m datasets --help` lists the commands."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from datasets import commands
from datasets.archives import ArchiveLimits
from datasets.causes import writing_cause
from datasets.layouts.toy import BRUSHED, CLASS_COUNTS, SURFACES
from datasets.loading import LAYOUTS
from datasets.reading_arguments import add_reading_arguments
from datasets.sharding.packing import DEFAULT_SHARD_MB
from datasets.splitting import TEST_FRACTION, VAL_FRACTION
from segdec.command_line.service_keys import KEY_VARIABLE
from segdec.images import DEFAULT_MAX_PIXELS
from segdec.runtime.cli import clean_exit, parse_pixel_limit, parse_white_level, raise_pixel_limit

NAMES = f"layout: {', '.join(LAYOUTS)}; or {commands.AUTO}, which detects it"
SPLITS = "split file, replaces the split of the layout"


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command given by `arguments`; exits with 2 after an error that the user can correct."""
    options = _parser().parse_args(arguments)
    with clean_exit(group="train"), writing_cause(options.error):
        if "max_pixels" in options:
            raise_pixel_limit(options.max_pixels)
        options.command(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m datasets", description="Write, inspect, split, pack and convert data sets."
    )
    code = "write what an error is about, code and values, as JSON, for programs"
    parser.add_argument("--error", type=Path, metavar="FILE", help=code)
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_toy(added.add_parser("toy", help="write the synthetic toy set"))
    _add_inspect(added.add_parser("inspect", help="print statistics of a data set and draw a contact sheet"))
    _add_split(added.add_parser("split", help="write split files by group, or folds"))
    _add_pack(added.add_parser("pack", help="write a data set as TFRecord shards"))
    _add_convert(added.add_parser("convert", help="write a data set as a folder with a manifest"))
    unusual = "write what is unusual about single photographs"
    _add_findings(added.add_parser("findings", help=unusual))
    _add_push(added.add_parser("push", help="send a data set to a service"))
    _add_unpack(added.add_parser("unpack", help="unpack a zip archive that may be damaged or hostile"))
    return parser


def _add_toy(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("out", type=Path, metavar="OUT", help="folder to create")
    add("--count", type=int, default=400, help="number of samples (default: %(default)s)")
    add("--size", type=int, default=128, help="height and width, pixels (default: %(default)s)")
    add("--classes", type=int, default=2, choices=CLASS_COUNTS, help="2 or 4 (default: %(default)s)")
    add("--surface", default=BRUSHED, choices=SURFACES, help="material of the parts (default: %(default)s)")
    add("--seed", type=int, default=0, help="seed of all random choices (default: %(default)s)")
    add("--overwrite", action="store_true", help="replace an existing toy set at OUT")
    parser.set_defaults(command=commands.toy)


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("layout", metavar="NAME", help=NAMES)
    _add_reading(parser)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("root", metavar="ROOT", help="folder of the data set; for shards also a URL")
    add_reading_arguments(add)
    limit = "limit on height × width of a photograph; see data.max_pixels (default: %(default)s)"
    add("--max-pixels", type=parse_pixel_limit, default=DEFAULT_MAX_PIXELS, metavar="N", help=limit)


def _add_splits(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--splits", type=Path, metavar="FILE", help=SPLITS)
    leak = "photograph or group that may be in two splits, or have a near duplicate there; repeatable"
    add("--allow-leak", action="append", default=[], metavar="NAME", help=leak)


def _add_skip_broken(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--skip-broken", action="store_true", help="leave out photographs with problems, and list them"
    )


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    _add_splits(parser)
    add = parser.add_argument
    add("--out", type=Path, default=Path("contact_sheet.png"), help="PNG to write (default: %(default)s)")
    white = "value that is white in 16-bit photographs; see input.white_level"
    add("--white-level", type=parse_white_level, metavar="N", help=white)
    near = "text file to write: all near duplicates in different splits"
    add("--twins", dest="duplicates", type=Path, metavar="FILE", help=near)
    parser.set_defaults(command=commands.inspect)


def _add_split(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    _add_skip_broken(parser)
    add = parser.add_argument
    out = "file to write; with --folds a folder for fold_0.txt, fold_1.txt, …"
    add("out", type=Path, metavar="OUT", help=out)
    add("--folds", type=int, metavar="K", help="write K folds; fold k tests part k")
    add("--val", type=float, default=VAL_FRACTION, help="share for validation (default: %(default)s)")
    add("--test", type=float, help=f"share for testing, not with --folds (default: {TEST_FRACTION})")
    add("--seed", type=int, default=0, help="seed of the split (default: %(default)s)")
    near = "keep near duplicates in one split"
    add("--group-twins", dest="group_duplicates", action="store_true", help=near)
    parser.set_defaults(command=commands.split)


def _add_pack(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    _add_splits(parser)
    _add_skip_broken(parser)
    add = parser.add_argument
    add("out", metavar="OUT", help="folder to create, or a URL such as gs://bucket/parts")
    size = "approximate size of a shard, MB (default: %(default)s)"
    add("--shard-mb", type=int, default=DEFAULT_SHARD_MB, help=size)
    add("--overwrite", action="store_true", help="replace existing shards at OUT")
    parser.set_defaults(command=commands.pack)


def _add_convert(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    parser.add_argument("--splits", type=Path, metavar="FILE", help=SPLITS)
    _add_skip_broken(parser)
    add = parser.add_argument
    add("out", type=Path, metavar="OUT", help="folder to create, of the layout manifest")
    lines = "file to write: a JSON object on each line for each problem (place, text, name)"
    add("--problems", type=Path, metavar="FILE", help=lines)
    bad = "give no photograph a split if the file splits.txt is invalid, and print a note"
    add("--skip-bad-split-file", action="store_true", help=bad)
    own = "leave out photographs with a file outside of ROOT, which a manifest can name"
    add("--own-files", action="store_true", help=own)
    every = "all photographs below ROOT, with the label ignore, whatever folders and annotations state"
    add("--unlabelled", action="store_true", help=every)
    parser.set_defaults(command=commands.convert)


def _add_findings(parser: argparse.ArgumentParser) -> None:
    _add_source(parser)
    lines = "file to write: a JSON object on each line for each finding (kind, names, text)"
    parser.add_argument("out", type=Path, metavar="OUT", help=lines)
    parser.set_defaults(command=commands.findings)


def _add_push(parser: argparse.ArgumentParser) -> None:
    _add_reading(parser)
    _add_skip_broken(parser)
    add = parser.add_argument
    layout = f"{NAMES} (default: %(default)s)"
    add("--layout", default=commands.AUTO, metavar="NAME", help=layout)
    add("--url", required=True, help="address of the service, for example http://127.0.0.1:8000")
    add("--data-set", required=True, metavar="NAME", help="data set of the service; created if missing")
    key = f"file with the API key of an engineer; default: ${KEY_VARIABLE}"
    add("--api-key-file", "--key-file", type=Path, metavar="FILE", help=key)
    parser.set_defaults(command=commands.push, splits=None)


def _add_unpack(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    limits = ArchiveLimits()
    add("archive", type=Path, metavar="ARCHIVE", help="zip file")
    add("out", type=Path, metavar="OUT", help="folder to create")
    files = "limit on the number of files and folders (default: %(default)s)"
    add("--max-files", type=int, default=limits.files, metavar="N", help=files)
    size = "limit on the size after unpacking, GB (default: %(default)g)"
    add("--max-gb", type=float, default=limits.unpacked_bytes / 1e9, metavar="N", help=size)
    parser.set_defaults(command=commands.unpack)


if __name__ == "__main__":
    main()
