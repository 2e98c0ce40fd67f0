"""`python -m api --model FOLDER` serves a model over HTTP.

`python -m api key NAME` makes an API key, `python -m api health` checks whether the service is ready,
`python -m api export-reviewed --out FOLDER` exports reviewed photographs as a dataset for training,
`python -m api report shift --out FILE.pdf` writes a report,
`python -m api user add NAME --role ROLE` adds a user of the pages.
"""

import os
import signal
import sys
from importlib import import_module

from segdec.errors import ConfigError
from segdec.runtime.cli import clean_exit, raise_pixel_limit

RECORD_COMMANDS = {
    "export-reviewed": "api.review.export_command",
    "report": "api.reports.report_command",
    "user": "api.accounts.user_command",
}
"""Commands that need the group `record`, and their modules."""


def main() -> None:
    """Runs the service until a signal stops it, or one of the other commands."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # a stop during the start is not a failure
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nothing to reload yet
    with clean_exit(group="serve"):
        match sys.argv[1:]:
            case ["key", *words]:
                _make_key(words)
            case ["health", *words]:
                from api.listener.health_check import print_health

                sys.exit(print_health(words))
            case [name, *words] if name in RECORD_COMMANDS:
                _run_with_record(RECORD_COMMANDS[name], words)
            case arguments:
                _serve(arguments)


def _serve(arguments: list[str]) -> None:
    from api.settings import read_settings

    settings = read_settings(arguments)
    # A second check, which OpenCV reads once, when it is imported.
    os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(settings.max_pixels))
    raise_pixel_limit(settings.max_pixels)
    from api.listener.server import serve

    serve(settings)


def _make_key(words: list[str]) -> None:
    from api.accounts.keys import print_new_key

    if words in (["-h"], ["--help"]):
        print("usage: python -m api key NAME\n\nPrints a new key, once, and its line for a key file.")
        return
    if len(words) != 1 or words[0].startswith("-"):
        names = " ".join(words) or "none"
        raise ConfigError(f"python -m api key needs one name; got {names}. Expected: key NAME")
    print_new_key(words[0])


def _run_with_record(module: str, words: list[str]) -> None:
    from api.record.recording import explain_missing_group

    with explain_missing_group():
        import_module(module).run(words)


if __name__ == "__main__":
    main()
