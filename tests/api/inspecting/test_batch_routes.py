import base64
import time
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.api.conftest import problem

URL = "/v1/predict/batch?mask=none"


def send(client, *files: tuple[str, bytes]) -> httpx.Response:
    return client.post(URL, files=[("file", file) for file in files])


def test_each_photograph_gets_an_answer_or_a_problem(client, part):
    answer = send(client, ("a.png", part), ("b.png", part[:60]), ("c.txt", b"text"), ("d.png", part))
    items = answer.json()["items"]
    assert answer.status_code == 200
    assert [item["name"] for item in items] == ["a.png", "b.png", "c.txt", "d.png"]
    assert [item["answer"] is None for item in items] == [False, True, True, False]
    assert [item["problem"] is None for item in items] == [True, False, False, True]
    assert [item["problem"]["status"] for item in items[1:3]] == [422, 422]
    assert items[2]["problem"]["code"] == "unsupported_type"
    assert items[0]["answer"]["decision"]["label"] == "scratch"
    assert items[0]["answer"]["id"] == answer.headers["X-Request-ID"]


def test_photographs_of_one_request_share_batches(client, predictor, part):
    files = [(f"{number}.png", part) for number in range(8)]
    predictor.block()  # the network is busy with another one until all of them wait
    with ThreadPoolExecutor(2) as senders:
        other = senders.submit(send, client, files[0])
        assert predictor.entered.acquire(timeout=30)
        answer = senders.submit(send, client, *files)
        while client.app.state.service.inspection.inference_thread.waiting < len(files):
            assert not answer.done()
            time.sleep(0.001)
        predictor.gate.set()
    assert other.result().json()["items"][0]["answer"]["batch_size"] == 1
    assert [item["answer"]["batch_size"] for item in answer.result().json()["items"]] == [8] * 8


def test_json_holds_several_photographs(client, part):
    encoded = base64.b64encode(part).decode()
    images = [{"b64": encoded, "name": "first"}, {"b64": encoded}]
    items = client.post(URL, json={"images": images}).json()["items"]
    assert [item["name"] for item in items] == ["first", "The image"]
    assert [item["answer"]["decision"]["label"] for item in items] == ["scratch", "scratch"]


def test_messages_say_how_to_send_several_photographs(client, part):
    answer = client.post(URL, json={"image": {"b64": ""}})
    assert problem(answer) == (400, "bad_json")
    assert answer.json()["detail"].endswith('Expected JSON such as {"images": [{"b64": "…"}]}.')
    answer = client.post(URL, content=part, headers={"Content-Type": "image/png"})
    assert problem(answer) == (415, "unsupported_content_type")
    assert answer.json()["detail"].startswith("Content-Type 'image/png'; expected several images.")
    assert "multipart/form-data" in answer.json()["detail"]


def test_request_of_more_photographs_than_places_is_answered_whole(serve, make_app, part):
    with serve(make_app(queue_size=1)) as client:
        items = send(client, *[(f"{number}.png", part) for number in range(12)]).json()["items"]
        assert all(item["answer"] for item in items)
        assert client.app.state.service.inspection.queue.admitted == 0
