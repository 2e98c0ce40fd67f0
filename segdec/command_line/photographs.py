"""Finds the photographs that the command line's arguments name."""

import argparse
import csv
import glob
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from segdec.errors import ConfigError
from segdec.images import SUFFIXES
from segdec.runtime.csv_cells import restore_text


@dataclass(frozen=True)
class Shard:
    """Shard `number` (from 1) of `count`; the shard of a photograph depends only on its path, as given."""

    number: int
    count: int

    def select(self, photographs: Iterable[Path]) -> list[Path]:
        """Returns the photographs of this shard, in order."""
        return [path for path in photographs if zlib.crc32(os.fsencode(path)) % self.count == self.number - 1]


def parse_shard(text: str) -> Shard:
    """Parses a shard such as `3/16`, for `argparse`."""
    match = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a shard. Expected NUMBER/COUNT, for example 3/16")
    return Shard(int(match[1]), int(match[2]))


def find_photographs(arguments: Iterable[Path], ignored: Counter[str] | None = None) -> list[Path]:
    """Finds the photographs that `arguments` name, each once.

    `ignored` receives the number of other files below the folders, by suffix.

    A folder stands for the photographs below it, sorted; a list (see `LISTS`) for those that it names; a
    pattern such as `line*/**/*.png` for the photographs that match it, sorted. Other paths are returned as
    they are, even if they do not exist.

    Raises:
        ConfigError: If a folder, a list or a pattern has no photographs or cannot be read.
    """
    return list(dict.fromkeys(path for argument in arguments for path in _expand(argument, ignored)))


def _expand(path: Path, ignored: Counter[str] | None) -> Sequence[Path]:
    if path.is_dir():
        return _checked(path, sorted(photographs_below(path, ignored)))
    if path.suffix.lower() in LISTS:
        return _read_list(path)
    if glob.has_magic(str(path)) and not path.exists():
        matching = sorted(Path(name) for name in glob.iglob(str(path), recursive=True))  # noqa: PTH207 # of any root
        return _checked(path, [one for one in matching if _is_photograph(one.name)])
    return [path]


def photographs_below(folder: Path, ignored: Counter[str] | None = None) -> Iterator[Path]:
    """Lists the photographs in `folder` and its subfolders, without hidden ones, in any order.

    `ignored` receives the number of other files that are not hidden, by suffix.

    Follows links; a folder that several links reach is listed once. Raises ConfigError if one is unreadable.
    """
    listed: set[Path] = set()
    for name, below, files in os.walk(folder, followlinks=True, onerror=_raise_unreadable):
        real = Path(name).resolve()
        below[:] = [] if real in listed else sorted(inner for inner in below if not inner.startswith("."))
        if real not in listed:
            listed.add(real)
            yield from (Path(name, file) for file in files if _is_photograph(file))
            if ignored is not None:
                others = (file for file in files if not file.startswith(".") and not _is_photograph(file))
                ignored.update(Path(file).suffix.lower() or "none" for file in others)


def _is_photograph(name: str) -> bool:
    return not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES


def _checked(place: Path, photographs: list[Path]) -> list[Path]:
    if not photographs:
        raise ConfigError(
            f"{place} has no photographs. Expected files of the types {', '.join(sorted(SUFFIXES))} in it or "
            "its subfolders; pass the folder with the photographs, or a pattern that matches them."
        )
    return photographs


def _lines(text: str) -> Iterator[str]:
    yield from (line.strip() for line in text.splitlines())


def _column(text: str) -> Iterator[str]:
    table = csv.DictReader(text.splitlines())
    if "image" not in (table.fieldnames or ()):
        raise ValueError("its first line has no column 'image'")
    yield from (restore_text(row["image"] or "") for row in table)


def _objects(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            record = json.loads(line)
            if not isinstance(record, dict) or not isinstance(record.get("image"), str):
                raise ValueError(f"line {number} is not an object with an 'image'")
            yield record["image"]


LISTS: dict[str, Callable[[str], Iterator[str]]] = {".txt": _lines, ".csv": _column, ".jsonl": _objects}
"""Readers of list files, by suffix: one path per line, a column `image`, or one object with `image` per line.

Paths are relative to the folder of the list.
"""


def _read_list(file: Path) -> list[Path]:
    try:
        named = [name for name in LISTS[file.suffix.lower()](file.read_text(encoding="utf-8-sig")) if name]
    except OSError as error:
        raise ConfigError(f"The list {file} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # of JSON and UTF-8 too
        raise ConfigError(
            f"{file} is not a list of photographs ({error}). Expected one path per line (.txt), a column "
            "'image' (.csv) or one object with 'image' per line (.jsonl)."
        ) from error
    if not named:
        raise ConfigError(f"{file} names no photograph. Expected paths relative to the folder of the list.")
    return [file.parent / name for name in named]


def _raise_unreadable(error: OSError) -> NoReturn:
    raise ConfigError(
        f"The folder {error.filename} cannot be listed: {error.strerror}. Check its permissions and its disk."
    ) from error
