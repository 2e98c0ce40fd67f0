"""`python -m api --model FOLDER`: serves a model over HTTP."""

import os
import sys

from segdec.errors import MissingExtraError
from segdec.terminal import clean_exit, quiet_tensorflow


def main() -> None:
    """Runs the service until it is told to stop."""
    with clean_exit():
        try:
            from api.server import serve
            from api.settings import read_settings
        except ModuleNotFoundError as error:
            raise MissingExtraError(error.name or "fastapi", "serve") from error
        settings = read_settings(sys.argv[1:], os.environ)
        quiet_tensorflow()
        serve(settings)


if __name__ == "__main__":
    main()
