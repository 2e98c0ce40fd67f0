"""What is posted, and what becomes of the answer."""

import asyncio
import ssl

import httpx
import pytest

from api.delivery.sink import DeliveryError, OutboxMessage
from api.delivery.webhook import MAX_ANSWER_BYTES, Webhook, load_secrets
from segdec.errors import ConfigError
from segdec.webhooks import verify_webhook

SECRETS = ["whsec_" + "A" * 32, "whsec_" + "B" * 32]
MESSAGE = OutboxMessage(1, "e1", "inspected", "a", '{"specversion":"1.0","id":"e1","data":{"part_id":"Ä"}}')
NOW = 1_700_000_000.7


async def nothing():
    """A body as the network has it: not read yet."""
    yield b""


def deliver(answer, url="https://mes.plant/events", secrets=SECRETS):
    """Posts an event to who answers so; returns the requests that came."""
    requests = []

    def handle(request):
        requests.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(answer, content=nothing())

    async def main():
        trust = ssl.create_default_context()
        webhook = Webhook(url, secrets, trust, lambda: NOW, httpx.MockTransport(handle))
        try:
            await webhook.deliver(MESSAGE)
        finally:
            await webhook.close()

    asyncio.run(main())
    return requests


def test_an_event_is_posted_whole_and_signed():
    (request,) = deliver(202)
    assert (request.method, str(request.url)) == ("POST", "https://mes.plant/events")
    assert request.headers["content-type"] == "application/cloudevents+json"
    assert request.content.decode() == MESSAGE.event
    for secret in SECRETS:
        assert verify_webhook(secret, request.headers, request.content, NOW) == "e1"


def test_name_and_password_of_the_address_are_sent_as_such():
    (request,) = deliver(200, "https://mes:secret@mes.plant/")
    assert request.headers["authorization"] == "Basic bWVzOnNlY3JldA=="
    assert str(request.url) == "https://mes.plant/", "the address may come into a log"


@pytest.mark.parametrize(
    ("answer", "blame"),
    [
        *[(status, "refused") for status in (400, 422)],
        *[(status, "unreachable") for status in (401, 429)],
        *[(status, "unreachable") for status in (503,)],
        *[(status, "failed") for status in (500,)],
        (307, "unreachable"),
        (httpx.ConnectError("refused"), "unreachable"),
    ],
)
def test_what_is_not_taken_is_tried_again_where_the_event_is_not_to_blame(answer, blame):
    with pytest.raises(DeliveryError) as failure:
        deliver(answer, "https://mes:secret@mes.plant/")
    assert failure.value.blame == blame
    assert "secret" not in str(failure.value)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ("7", 7.0),
        ("Tue, 14 Nov 2023 22:15:00 GMT", pytest.approx(99.3)),
        ("Tue, 14 Nov 2023 22:13:00 GMT", 0.0),
        ("Tue, 14 Nov 99999 22:13:00 GMT", 0.0),
        ("soon", 0.0),
        ("-1", 0.0),
        ("9" * 400, 0.0),
    ],
)
def test_the_receiver_says_when(asked, seconds):
    with pytest.raises(DeliveryError) as failure:
        deliver(httpx.Response(429, headers={"Retry-After": asked}, content=nothing()))
    assert failure.value.retry_after_s == seconds


def test_an_answer_without_an_end_is_not_read_to_it():
    read = 0

    async def endless():
        nonlocal read
        while True:
            read += 1
            yield b" " * 1024

    deliver(httpx.Response(200, content=endless()))
    assert read == MAX_ANSWER_BYTES // 1024 + 1


@pytest.mark.parametrize("url", ["", "mes.plant", "ftp://mes.plant", "https://", "https://u:secret@:80"])
def test_an_address_of_nobody_is_refused_without_its_password(url):
    with pytest.raises(ConfigError, match="Expected for example https://") as refusal:
        deliver(200, url)
    assert "secret" not in str(refusal.value)


def test_secrets_are_read_one_a_line(tmp_path):
    file = tmp_path / "secrets"
    file.write_text(f"# new\n{SECRETS[0]}\n\n  {SECRETS[1]}\n")
    assert load_secrets(file) == SECRETS


@pytest.mark.parametrize("text", [None, "", "# none\n", "secret\n", "whsec_ä\n"])
def test_a_file_without_secrets_is_refused(tmp_path, text):
    file = tmp_path / "secrets"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError):
        load_secrets(file)
