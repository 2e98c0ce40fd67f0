"""The client against the real service: what one writes, the other reads."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import TypeVar

import anyio
import httpx
import numpy as np
from fastapi import FastAPI

from segdec.client import AsyncClient
from segdec.mask_decoding import unpack_mask

T = TypeVar("T")

DEFECT = np.zeros((24, 40), np.uint8)
"""Of the fixture `part`."""

DEFECT[8:12, 10:16] = 255


def run_client(app: FastAPI, use: Callable[[AsyncClient], Awaitable[T]], **options: object) -> T:
    """Returns what `use` does with a client of the started `app`, in one event loop."""

    async def run() -> T:
        async with app.router.lifespan_context(app):
            await app.state.service.start()
            words = {"transport": httpx.ASGITransport(app), **options}
            async with AsyncClient("http://test", **words) as client:
                return await use(client)

    return anyio.run(run)


def test_every_form_of_the_mask(app, part):
    async def use(client):
        forms = ("png", "rle", "polygon", "scores", "none")
        return [await client.predict(part, mask=form) for form in forms]

    *masks, scores, none = run_client(app, use)
    for answer in masks:
        np.testing.assert_array_equal(unpack_mask(answer.mask), DEFECT)
    np.testing.assert_array_equal(unpack_mask(scores.mask), np.where(DEFECT > 0, 204, 40))
    assert none.mask is None
    assert (none.decision.label, none.regions[0].area_px) == ("scratch", 24)


def test_options_reach_the_service(app, part):
    async def use(client):
        [model] = await client.models()
        return await client.predict(
            part, model=model.name, version=model.version, threshold=0.9, space="model", deadline_ms=30_000
        )

    answer = run_client(app, use)
    assert (answer.decision.label, answer.decision.threshold) == ("good", 0.9)
    np.testing.assert_array_equal(unpack_mask(answer.mask), DEFECT[::8, ::8])


def test_inspections_are_recorded_once_for_each_key(make_app, tmp_path, part):
    facts = {"station": "line3", "part_id": "A17", "metadata": {"shift": "früh"}}

    async def use(client):
        first = await client.inspect(part, idempotency_key="shot-1", mask="rle", **facts)
        again = await client.inspect(part, idempotency_key="shot-1", mask="rle", **facts)
        other = [await client.inspect(part, station="line3") for _ in range(2)]
        return first, again, other

    first, again, other = run_client(make_app(record="required", record_folder=tmp_path / "record"), use)
    assert (first.record_id, first.repeated, again.record_id, again.repeated) == (1, False, 1, True)
    np.testing.assert_array_equal(unpack_mask(again.mask), DEFECT)
    assert len({first.record_id, *(answer.record_id for answer in other)}) == 3
    with closing(sqlite3.connect(tmp_path / "record" / "record.db")) as database:
        found = database.execute("SELECT station, part_id, details FROM inspections").fetchall()
    assert found == [("line3", "A17", '{"shift": "fr\\u00fch"}'), *[("line3", None, "{}")] * 2]


def test_lost_answer_is_requested_again(make_app, tmp_path, part):
    app = make_app(record="required", record_folder=tmp_path / "record")

    class Losing(httpx.ASGITransport):
        """Breaks off the first answer when all of it is there."""

        lost = False

        async def handle_async_request(self, request):
            answer = await super().handle_async_request(request)
            if not self.lost:
                self.lost = True
                raise httpx.ReadError("reset", request=request)
            return answer

    words = {"transport": Losing(app), "sleep": lambda _: anyio.sleep(0)}
    answer = run_client(app, lambda client: client.inspect(part), **words)
    assert (answer.record_id, answer.repeated) == (1, True)
