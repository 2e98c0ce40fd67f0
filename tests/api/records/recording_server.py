"""`python -m tests.api.records.recording_server FLAGS` runs the real server with a stub for its model."""

import sys
from functools import partial
from unittest import mock

from api import server
from api.app import create_app
from api.settings import read_settings
from tests.api.conftest import StubPredictor


def main() -> None:
    settings = read_settings(["--model", "unused", "--port", "0", *sys.argv[1:]])
    with (
        mock.patch.object(server, "create_app", partial(create_app, predictor=StubPredictor())),
        mock.patch.object(server, "open_store"),
        mock.patch.object(server, "_may_need_tensorflow", return_value=False),
    ):
        server.serve(settings)


if __name__ == "__main__":
    main()
