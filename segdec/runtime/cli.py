"""Shared by all entry points: error messages, exit codes, quiet TensorFlow import, limits of the process."""

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeAlias

from segdec.errors import MissingExtraError, SegdecError, is_own_module
from segdec.imaging.header import MAX_PIXEL_LIMIT, import_pillow
from segdec.runtime.threads import MAX_THREADS

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What `add_subparsers` returns."""


@contextmanager
def clean_exit(extra: str | None = None, *, group: str | None = None) -> Iterator[None]:
    """Turns exceptions in the body of an entry point into a message and an exit code.

    A `SegdecError` is printed as `error: …` with exit code 2, a full disk or a missing permission likewise;
    an interrupt exits with 130, a closed pipe (`… | head`) silently with 141. Other exceptions are bugs and
    keep their traceback. `extra` or `group` installs the command's packages and is named if one is missing.
    """
    try:
        try:
            yield
        except ModuleNotFoundError as error:
            if error.name is None or is_own_module(error) or (extra is None and group is None):
                raise
            raise MissingExtraError(error.name, extra, group=group) from error
        sys.stdout.flush()
    except SegdecError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(EXIT_ERROR) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)  # so that the last flush of Python does not fail again
        os.close(null)
        raise SystemExit(EXIT_BROKEN_PIPE) from None
    except OSError as error:  # a full disk or a missing permission
        place = f"{error.filename}: " if error.filename else ""
        print(f"error: {place}{error.strerror or error}", file=sys.stderr)
        raise SystemExit(EXIT_ERROR) from None


def import_tensorflow(*, trains: bool = False) -> None:
    """Imports TensorFlow and lists its devices, without the messages that it prints.

    Call it before anything else in an entry point. It respects `TF_CPP_MIN_LOG_LEVEL` and
    `TF_ENABLE_ONEDNN_OPTS`, and shows the messages if the import fails.

    Args:
        trains: Whether the process will train; turns oneDNN on. On a CPU without AVX-512, where TensorFlow
            leaves it off, oneDNN makes training steps more than twice as fast, but inference on large
            photographs slower.

    Raises:
        MissingExtraError: If TensorFlow is not installed.
    """
    if "tensorflow" in sys.modules and sys.modules["tensorflow"] is not None:
        return
    if sys.modules.get("tensorflow", ...) is None or find_spec("tensorflow") is None:
        raise MissingExtraError("tensorflow", "tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if trains:
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    with hide_stderr():
        import tensorflow as tf

        tf.config.list_physical_devices()  # the search for GPUs prints too
    tf.get_logger().setLevel("ERROR")  # its warnings concern the use of TensorFlow, not the run


def progress_bar(items: Iterable[Any] | None = None, *, shown: bool = True, **options: Any) -> Any:
    """Returns a `tqdm` progress bar on stderr, which is shown only on a terminal and if `shown`."""
    from tqdm import tqdm

    return tqdm(items, disable=None if shown else True, **(options | _bar_shape()))


def _bar_shape() -> dict[str, int]:
    """Returns a default size if the terminal reports none, as in a container: the bar would be invisible."""
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # not a terminal, or closed
        return {}
    if size.columns and size.lines:
        return {}
    usual = shutil.get_terminal_size()
    columns, rows = size.columns or usual.columns, size.lines or usual.lines
    return {"ncols": columns, "nrows": rows, "dynamic_ncols": False}


def raise_pixel_limit(max_pixels: int) -> None:
    """Raises Pillow's limit on image size to `max_pixels`, for the whole process; never lowers it."""
    image = import_pillow()
    if image.MAX_IMAGE_PIXELS is not None:  # None: no limit
        image.MAX_IMAGE_PIXELS = max(image.MAX_IMAGE_PIXELS, max_pixels)


def _number_parser(what: str, lowest: int, highest: int) -> Callable[[str], int]:
    """Returns a parser of whole numbers for `argparse`."""

    def parse(text: str) -> int:
        if not re.fullmatch("[0-9]{1,12}", text) or not lowest <= int(text) <= highest:
            raise argparse.ArgumentTypeError(
                f"'{text}' is not {what}. Expected a number from {lowest} to {highest}."
            )
        return int(text)

    return parse


parse_white_level = _number_parser("a white level", 256, 65535)
parse_pixel_limit = _number_parser("a pixel limit", 1, MAX_PIXEL_LIMIT)
parse_seed = _number_parser("a seed", 0, 2**32 - 1)
parse_thread_count = _number_parser("a number of threads", 1, MAX_THREADS)


@contextmanager
def hide_stderr() -> Iterator[None]:
    """Hides what native code prints on stderr within the block; shows it if the block raises.

    It affects all threads, because the process shares the file descriptor.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as hidden:
        os.dup2(hidden.fileno(), 2)
        try:
            yield
        except BaseException:
            hidden.seek(0)
            os.write(saved, hidden.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
