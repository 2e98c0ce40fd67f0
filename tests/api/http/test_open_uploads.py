"""Slow bodies keep no others out, whether they hold places or memory."""

from contextlib import closing

import pytest

from api.errors import RequestError
from api.http.admission import ByteLimit
from api.http.open_uploads import MAX_PAUSE_S, MAX_START_S, MIN_BYTES_PER_S, OpenUpload, UploadLimit
from tests.api.listener.test_http_protocol import POST, Wire, length
from tests.api.live_server import served


def test_photograph_takes_the_place_of_a_slow_upload(make_app, skipping_loop, part):
    app = make_app(max_uploads=1)
    with served(app) as address, closing(Wire(address)) as slow, closing(Wire(address)) as wire:
        slow.send(POST, length(len(part)), part[:1])
        while not app.state.service.bodies.uploads.open:
            skipping_loop.skip(0)
        skipping_loop.skip(1)
        wire.send(POST, length(len(part)), part)
        assert wire.response().status == 200
        refused = slow.response()
        assert refused.problem() == (503, "uploads_full")
        assert "too slowly" in refused.body["detail"]
        assert (refused.headers["retry-after"], refused.headers["connection"]) == ("1", "close")
        assert slow.ended()


class Uploads:
    """Uploads at a time that the test sets."""

    def __init__(self, limit: int, max_bytes: int = 10) -> None:
        self.now = 0.0
        self.limit = UploadLimit(limit, 1, lambda: self.now)
        self.memory = ByteLimit(max_bytes, 1)

    def open(self, client: str, count: int = 0) -> OpenUpload:
        upload = OpenUpload(self.limit, client, self.memory.reserve()).__enter__()
        upload.reserve_memory(count)
        return upload


def test_uploads_are_limited_for_each_client_and_in_total():
    uploads = Uploads(4)
    first = [uploads.open("camera") for _ in range(2)]
    with pytest.raises(RequestError, match="2 bodies of this client are being read"):
        uploads.open("camera")
    uploads.open("line"), uploads.open("line")
    with pytest.raises(RequestError, match="4 bodies are being read") as full:
        uploads.open("page")
    assert (full.value.status, full.value.headers) == (503, {"Retry-After": "1"})
    first[0].__exit__()
    uploads.open("page")
    assert (uploads.limit.admitted, uploads.limit.total) == (4, 5)


def test_only_slow_uploads_are_replaced_and_the_slowest_first():
    uploads = Uploads(8)
    slow, slower, fast, paused = (uploads.open("camera") for _ in range(4))
    paused.receive(10**9)
    fast.receive(MIN_BYTES_PER_S // 2)
    slow.receive(1)
    uploads.now = MAX_START_S + 0.01
    replaced = []
    for _ in range(2):
        uploads.open("camera").receive(MIN_BYTES_PER_S)
        replaced.append((slower.removed, slow.removed))
    assert replaced == [(True, False), (True, True)]
    with pytest.raises(RequestError):
        uploads.open("camera")
    uploads.now = MAX_PAUSE_S
    fast.receive(MIN_BYTES_PER_S // 2)
    uploads.open("camera")
    assert (fast.removed, paused.removed) == (False, True)


def test_memory_of_slow_uploads_is_released_for_others():
    uploads = Uploads(8)
    slow, fast = uploads.open("camera", 6), uploads.open("line", 2)
    with pytest.raises(RequestError, match="take 8 bytes"):
        uploads.open("page", 8)
    uploads.now = 1.0
    fast.receive(MIN_BYTES_PER_S)
    page = uploads.open("page", 8)
    assert (slow.removed, fast.removed, page.removed) == (True, False, False)
    assert uploads.memory.reserved == 10
