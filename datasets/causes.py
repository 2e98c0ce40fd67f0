"""What an error or a problem is about, for programs that show it in another language."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from segdec.errors import DatasetError, ImageError, SegdecError
from segdec.runtime.files import write_text_atomic


@dataclass(frozen=True)
class Cause:
    """The kind of an error, and what its text states.

    Attributes:
        code: For programs, for example `mask_without_photograph`.
        values: Names, paths and numbers of the text.
    """

    code: str
    values: Mapping[str, str | int | float] = field(default_factory=dict, hash=False)


class CodedDatasetError(DatasetError):
    """A `DatasetError` with a cause."""

    def __init__(self, message: str, cause: Cause) -> None:
        super().__init__(message)
        self.cause = cause


def cause_of(error: BaseException) -> Cause | None:
    """Returns the cause of an error; None if it has none."""
    if isinstance(error, ImageError):
        return Cause(error.code)
    return error.cause if isinstance(error, CodedDatasetError) else None


@contextmanager
def writing_cause(path: Path | None) -> Iterator[None]:
    """Writes the cause of an error of the block, if it has one, as JSON with the keys code and values."""
    try:
        yield
    except SegdecError as error:
        cause = cause_of(error)
        if path is not None and cause is not None:
            write_text_atomic(path, json.dumps(asdict(cause)))
        raise
