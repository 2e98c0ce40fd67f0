"""`python -m api --model FOLDER`: serves a model over HTTP."""

import signal
import sys

from segdec.terminal import clean_exit


def main() -> None:
    """Runs the service until it is told to stop."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # a stop during the start is no failure
    with clean_exit(extra="serve"):
        from api.server import serve
        from api.settings import read_settings

        serve(read_settings(sys.argv[1:]))


if __name__ == "__main__":
    main()
