"""How the entry points behave: errors as one line, exit codes, a quiet TensorFlow, limits of the process."""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from segdec.errors import MissingExtraError, SegdecError
from segdec.imaging.header import import_pillow

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


@contextmanager
def clean_exit(extra: str | None = None, *, group: str | None = None) -> Iterator[None]:
    """Turns what ends a command early into a message and an exit code; for the body of an entry point.

    A `SegdecError` is printed as `error: …` and leaves with 2, an interrupt with 130, a reader that
    went away (`… | head`) silently with 141, a full disk or a missing permission with 2. Anything else is
    a fault of the program and keeps its traceback.

    Args:
        extra: The extra of `segdec` that installs what the command imports; a missing package names it.
        group: The dependency group of the checkout that does, where no extra is enough.

    Raises:
        SystemExit: With that code.
    """
    try:
        with _named_source(extra, group):
            yield
        sys.stdout.flush()
    except SegdecError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(EXIT_ERROR) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        _drop_output()
        raise SystemExit(EXIT_BROKEN_PIPE) from None
    except OSError as error:  # a full disk, a folder without permission: the user's to mend
        place = f"{error.filename}: " if error.filename else ""
        print(f"error: {place}{error.strerror or error}", file=sys.stderr)
        raise SystemExit(EXIT_ERROR) from None


@contextmanager
def _named_source(extra: str | None, group: str | None) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or (extra is None and group is None):
            raise
        raise MissingExtraError(error.name, extra, group=group) from error


def _drop_output() -> None:
    """Lets Python's last flush go nowhere instead of failing again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def import_tensorflow(*, trains: bool = False) -> None:
    """Imports TensorFlow and looks for its devices without the lines it prints on the way.

    Call it first thing in an entry point. `TF_CPP_MIN_LOG_LEVEL` and `TF_ENABLE_ONEDNN_OPTS` are respected
    where they are set. What was hidden is shown after all if the import fails.

    Args:
        trains: Whether the process will train. On a CPU without AVX-512 TensorFlow leaves oneDNN out by
            itself. Its gradients make a training step more than twice as fast there, but its convolutions
            alone are slower than TensorFlow's own where photographs are large.

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
    tf.get_logger().setLevel("ERROR")  # its warnings are about how TensorFlow is used, not about the run


def progress_bar(items: Iterable[Any] | None = None, *, shown: bool = True, **options: Any) -> Any:
    """Returns a `tqdm` bar on stderr; it shows where that is a terminal.

    Args:
        items: What is gone through; None where `update` counts.
        shown: Whether it may show at all.
        options: Of `tqdm`.
    """
    from tqdm import tqdm

    return tqdm(items, disable=None if shown else True, **(options | _bar_shape()))


def _bar_shape() -> dict[str, int]:
    """Returns what `tqdm` has to be told of the terminal on stderr; empty where it finds out by itself.

    A terminal that nobody looks at, such as that of `script` or of a container, may say that it has neither
    columns nor lines, and a bar that keeps to them cannot be seen.
    """
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # no terminal, or no file at all
        return {}
    if size.columns and size.lines:
        return {}
    usual = shutil.get_terminal_size()
    return {
        "ncols": size.columns or usual.columns,
        "nrows": size.lines or usual.lines,
        "dynamic_ncols": False,  # it would look for itself again
    }


def raise_pixel_limit(max_pixels: int) -> None:
    """Lets Pillow open pictures of up to `max_pixels`, without a warning; never lowers its limit.

    It is one limit for the whole process, so only an entry point may move it.

    Raises:
        MissingExtraError: If Pillow is not installed.
    """
    image = import_pillow()
    if image.MAX_IMAGE_PIXELS is not None:  # None: somebody has lifted it altogether
        image.MAX_IMAGE_PIXELS = max(image.MAX_IMAGE_PIXELS, max_pixels)


def white_level(text: str) -> int:
    """Reads the value of a flag `--white-level`, for `argparse`.

    Raises:
        ArgumentTypeError: If it is no whole number from 256 to 65535.
    """
    if not text.isascii() or not text.isdecimal() or not 256 <= int(text[:6]) <= 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is no white level. Expected a number from 256 to 65535.")
    return int(text)


def parse_pixel_limit(text: str) -> int:
    """Reads the value of a flag `--max-pixels`, for `argparse`.

    Raises:
        ArgumentTypeError: If it is no whole number from 1 to 2³⁰.
    """
    from segdec.images import MAX_PIXEL_LIMIT  # not above: OpenCV's own limit is set before it is imported

    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:12]) <= MAX_PIXEL_LIMIT:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no limit on pixels. Expected a number from 1 to {MAX_PIXEL_LIMIT}."
        )
    return int(text)


@contextmanager
def hide_stderr() -> Iterator[None]:
    """Hides what native code prints on file descriptor 2; shows it if an exception passes.

    Not for threads: the whole process shares the descriptor.
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
