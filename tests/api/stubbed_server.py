"""`python -m tests.api.stubbed_server FLAGS` runs the real server with a stub for its model.

It prints `prepare` and `infer` when such a step of a photograph begins; the one that the variable `HANGS`
names never ends. Neither does the interpreter: it stands for one whose libraries take seconds to take apart.
"""

import atexit
import os
import sys
import threading
from functools import partial
from unittest import mock

from api.app import create_app
from api.listener import server
from api.settings import read_settings
from tests.api.conftest import StubPredictor


class PrintingPredictor(StubPredictor):
    """Says when it begins to run, once it has been warmed; then it may hang."""

    warm = 4
    """Batches of the warm-up, one of each size."""

    def infer(self, prepared):
        self.warm -= 1
        if self.warm < 0:
            self._begin("infer")
        return super().infer(prepared)

    def prepare(self, image):
        self._begin("prepare")
        return super().prepare(image)

    def _begin(self, step: str) -> None:
        print(step, flush=True)
        if os.environ.get("HANGS") == step:
            threading.Event().wait()


def serve_stub(predictor: StubPredictor) -> None:
    """Runs the real server with `predictor` for its model, and the flags of the command."""
    settings = read_settings(["--model", "unused", "--port", "0", *sys.argv[1:]])
    with (
        mock.patch.object(server, "create_app", partial(create_app, predictor=predictor)),
        mock.patch.object(server, "open_store"),
        mock.patch.object(server, "_may_need_tensorflow", return_value=False),
    ):
        server.serve(settings)


if __name__ == "__main__":
    atexit.register(threading.Event().wait)
    serve_stub(PrintingPredictor())
