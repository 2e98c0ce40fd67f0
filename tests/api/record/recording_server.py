"""`python -m tests.api.record.recording_server FLAGS` runs the real server with a stub for its model."""

from tests.api.conftest import StubPredictor
from tests.api.stubbed_server import serve_stub

if __name__ == "__main__":
    serve_stub(StubPredictor())
