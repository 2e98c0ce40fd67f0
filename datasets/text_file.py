"""The text of a file that people or their tools write, and what it holds as JSON."""

import json
from pathlib import Path
from typing import Any

from segdec.errors import DatasetError


def read_text(path: Path, what: str = "annotation") -> str:
    """The text of `path`, UTF-8 with or without the byte order mark that spreadsheets put in front.

    Args:
        path: The file.
        what: What it is, for messages, for example `split`.

    Raises:
        DatasetError: When the file is missing, cannot be read, or is no UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DatasetError(f"The {what} file {path} does not exist. Check the path.") from None
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"The {what} file {path} is not UTF-8 text: {error}. Save it as UTF-8 (in a spreadsheet: "
            "'CSV UTF-8')."
        ) from error
    except OSError as error:
        raise DatasetError(f"The {what} file {path} cannot be read ({error.strerror}).") from error


def read_json(path: Path) -> Any:
    """What the JSON file `path` holds; raises DatasetError as `read_text`, and when it is no JSON."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DatasetError(
            f"The annotation file {path} is no JSON: {error}. Export it again; it may be cut off."
        ) from error
