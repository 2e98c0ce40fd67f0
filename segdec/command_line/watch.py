"""Inspects the photographs that a camera writes to a folder: `segdec watch FOLDER --url URL`."""

import argparse
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from segdec.command_line.drop_folder import DropFolder
from segdec.command_line.folder_watch import FolderWatch, StatusMessages
from segdec.command_line.incoming_files import IncomingFiles
from segdec.command_line.recorded_inspector import MAX_NAME_CHARACTERS, RecordedInspector
from segdec.command_line.service_keys import KEY_VARIABLE, explain_key_errors, read_key
from segdec.errors import ConfigError, MissingExtraError
from segdec.runtime.cli import Commands
from segdec.runtime.files import folder_lock
from segdec.runtime.identifiers import check_identifier

STABLE_AFTER_S = 2.0
SCAN_INTERVAL_S = 10.0
END_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def add_watch(commands: Commands) -> None:
    """Adds the command `watch` to the command line."""
    command = commands.add_parser(
        "watch",
        help="inspect and record the photographs that a camera writes to a folder",
        description="Send each photograph that arrives below FOLDER to /v1/inspect of a service, then move "
        "it to FOLDER/done or FOLDER/failed.",
    )
    command.set_defaults(run=watch)
    command.add_argument(
        "folder", type=Path, metavar="FOLDER", help="folder that the camera writes to, with its subfolders"
    )
    command.add_argument(
        "--url", required=True, help="address of the service, for example http://127.0.0.1:8000"
    )
    command.add_argument(
        "--station", type=_station, default="", metavar="NAME", help="where the photographs are taken"
    )
    command.add_argument(
        "--part-pattern",
        type=_part_pattern,
        metavar="REGEX",
        help="finds the part id in a file name, as its group 'part': '^(?P<part>[^_]+)_'",
    )
    command.add_argument(
        "--answers", action="store_true", help="write each answer next to its photograph: done/part.png.json"
    )
    command.add_argument(
        "--settle",
        dest="stable_after_s",
        type=_seconds,
        default=STABLE_AFTER_S,
        metavar="S",
        help="seconds without a change after which a file is complete (default: %(default)g)",
    )
    command.add_argument(
        "--look-every",
        dest="scan_interval_s",
        type=_seconds,
        default=SCAN_INTERVAL_S,
        metavar="S",
        help="seconds between scans of the folder without a change event, which network folders may not "
        "send (default: %(default)g)",
    )
    command.add_argument("--unrecorded", action="store_true", help="accept a service that does not record")
    command.add_argument(
        "--api-key-file", type=Path, metavar="FILE", help=f"file with the API key; default: ${KEY_VARIABLE}"
    )


def _station(text: str) -> str:
    if len(text) > MAX_NAME_CHARACTERS:
        raise argparse.ArgumentTypeError(
            f"{text!r} has {len(text)} characters. Expected at most {MAX_NAME_CHARACTERS}"
        )
    try:
        return check_identifier(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a name. {error}") from error


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time. Expected seconds, for example 2")
    return seconds


def _part_pattern(text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from error
    if "part" not in pattern.groupindex:
        raise argparse.ArgumentTypeError(f"{text!r} has no group 'part'. Expected one like '(?P<part>[^_]+)'")
    return pattern


def watch(options: argparse.Namespace) -> int:
    """Watches a folder until a signal stops it."""
    try:
        from segdec.client import Client
        from segdec.command_line.folder_events import FolderEvents
    except MissingExtraError as error:  # the extra 'watch' includes 'client'
        raise MissingExtraError(error.package, "watch") from error
    if not options.folder.is_dir():
        raise ConfigError(f"{options.folder} is not a folder. Expected the one that the camera writes to.")
    key = read_key(options.api_key_file)
    messages, folder = StatusMessages(), DropFolder(options.folder)
    folder.prepare()
    events = FolderEvents(options.folder, messages.warn)
    with (
        _exclusive(folder),
        _stopped_by_signals(events.stop),
        explain_key_errors(options.url, options.api_key_file, key),
        Client(options.url, api_key=key, sleep=events.wait) as client,
    ):
        inspector = RecordedInspector(
            client,
            station=options.station,
            part_pattern=options.part_pattern,
            stable_after_s=options.stable_after_s,
            accept_unrecorded=options.unrecorded,
            wait=events.wait,
            report_wait=messages.report_wait,
        )
        incoming = IncomingFiles(options.folder, options.stable_after_s)
        watched = (folder, incoming, inspector, events, messages)
        events.start()
        print(f"watching {options.folder} for {options.url}; Ctrl-C stops it", file=sys.stderr, flush=True)
        FolderWatch(*watched, options.stable_after_s, options.scan_interval_s, options.answers).run()
    return 0


@contextmanager
def _exclusive(folder: DropFolder) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(folder_lock(folder.inspecting, wait=False))
        except BlockingIOError:
            name = folder.inspecting.parent
            raise ConfigError(f"{name} is watched by another process. Expected one per folder.") from None
        yield


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Within the block, Ctrl-C and SIGTERM stop the command after the current photograph."""

    def handle(*_: object) -> None:
        # In a thread, because the interrupted thread may hold the locks that `stop` needs.
        threading.Thread(target=stop, name="stop").start()

    before = {number: signal.signal(number, handle) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
