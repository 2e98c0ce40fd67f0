"""Reads a published split, a Python pickle, without running anything that it may hold.

A pickle is a program. Only the steps that build lists, tuples, text, whole numbers and booleans are
taken; whatever would look up, make or call anything else is refused before the first step.
"""

import io
import pickle
import pickletools
from pathlib import Path
from typing import NoReturn

from segdec.errors import DatasetError

MAX_BYTES = 2**21
"""12,568 names, as many as Severstal has photographs, take about 0.4 MB."""

_ADVICE = "Expected one of the published split files, for example split_16.pyb: download it again."

_MEMO = ("PUT", "BINPUT", "LONG_BINPUT")
_STEPS = frozenset(
    (
        *("PROTO", "FRAME", "STOP", "MARK", *_MEMO, "MEMOIZE", "GET", "BINGET", "LONG_BINGET"),
        *("EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "NEWTRUE", "NEWFALSE"),
    )
)


def read_pickle(path: Path) -> object:
    """Reads the lists, tuples, text, numbers and booleans that the file at `path` holds.

    Raises:
        DatasetError: If the file cannot be read, is larger than `MAX_BYTES`, is damaged, or holds
            anything else.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DatasetError(f"The file {path} cannot be read ({error.strerror}). Check the path.") from error
    if len(data) > MAX_BYTES:
        raise DatasetError(f"The file {path} is larger than {MAX_BYTES} bytes. {_ADVICE}")
    _check_steps(data, path)
    try:
        value: object = _Unpickler(io.BytesIO(data)).load()
    except Exception as error:  # damaged pickles fail in any way: the documentation lists no complete set
        raise DatasetError(f"The file {path} is damaged ({error}). {_ADVICE}") from error
    return value


def _check_steps(data: bytes, path: Path) -> None:
    steps = pickletools.genops(data)
    while True:
        try:
            step, argument, _ = next(steps)
        except StopIteration:
            return
        except Exception as error:
            raise DatasetError(
                f"The file {path} is no pickle, or a damaged one ({error}). {_ADVICE}"
            ) from error
        if step.name not in _STEPS:
            what = f"{step.name} {argument}" if isinstance(argument, str) else step.name
            raise DatasetError(
                f"The file {path} holds more than lists of names ({what[:80]!r}). Nothing of it was run. "
                f"{_ADVICE}"
            )
        if step.name in _MEMO and int(argument or 0) > len(data):  # memory up to there would be reserved
            raise DatasetError(f"The file {path} is damaged (an object numbered {argument}). {_ADVICE}")


class _Unpickler(pickle.Unpickler):
    """The second lock on the same door."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")
