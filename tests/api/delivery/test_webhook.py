"""Requests of the webhook, and its reactions to answers."""

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
TLS = ssl.create_default_context()


async def nothing():
    """An empty body that is not read yet."""
    yield b""


def deliver(answer, url="https://mes.plant/events"):
    """Posts an event to a server with this answer; returns the requests."""
    requests = []

    def handle(request):
        requests.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else httpx.Response(answer, content=nothing())

    async def main():
        transport = httpx.MockTransport(handle)
        webhook = Webhook(url, SECRETS, TLS, lambda: NOW, transport)
        try:
            await webhook.deliver(MESSAGE)
        finally:
            await webhook.close()

    asyncio.run(main())
    return requests


def test_an_event_is_posted_and_signed():
    (request,) = deliver(202)
    assert (request.method, str(request.url)) == ("POST", "https://mes.plant/events")
    assert request.headers["content-type"] == "application/cloudevents+json"
    assert request.content.decode() == MESSAGE.event
    for secret in SECRETS:
        assert verify_webhook(secret, request.headers, request.content, NOW) == "e1"


def test_user_and_password_of_the_url_are_basic_authentication():
    (request,) = deliver(200, "https://mes:secret@mes.plant/")
    assert request.headers["authorization"] == "Basic bWVzOnNlY3JldA=="
    assert str(request.url) == "https://mes.plant/", "the address may come into a log"


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        *((400, "refused"), (401, "unreachable"), (503, "unreachable"), (500, "failed")),
        *((307, "unreachable"), (httpx.ConnectError("refused"), "unreachable")),
    ],
)
def test_the_answer_decides_whether_the_event_or_the_receiver_failed(answer, cause):
    with pytest.raises(DeliveryError) as failure:
        deliver(answer, "https://mes:secret@mes.plant/")
    assert failure.value.cause == cause
    assert "secret" not in str(failure.value)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        *(("7", 7.0), ("soon", 0.0), ("9" * 400, 0.0)),
        ("Tue, 14 Nov 2023 22:15:00 GMT", pytest.approx(99.3)),
        ("Tue, 14 Nov 2023 22:13:00 GMT", 0.0),
    ],
)
def test_retry_after_is_parsed(asked, seconds):
    with pytest.raises(DeliveryError) as failure:
        deliver(httpx.Response(429, headers={"Retry-After": asked}, content=nothing()))
    assert failure.value.retry_after_s == seconds


def test_an_endless_answer_is_not_read_completely():
    read = 0

    async def endless():
        nonlocal read
        while True:
            read += 1
            yield b" " * 1024

    deliver(httpx.Response(200, content=endless()))
    assert read == MAX_ANSWER_BYTES // 1024 + 1


@pytest.mark.parametrize("url", ["", "mes.plant", "ftp://mes.plant", "https://", "https://u:secret@:80"])
def test_an_invalid_url_is_rejected_without_its_password(url):
    with pytest.raises(ConfigError, match="Expected for example https://") as refusal:
        deliver(200, url)
    assert "secret" not in str(refusal.value)


def test_each_line_of_the_file_is_a_secret(tmp_path):
    file = tmp_path / "secrets"
    file.write_text(f"# new\n{SECRETS[0]}\n\n  {SECRETS[1]}\n")
    assert load_secrets(file) == SECRETS


@pytest.mark.parametrize("text", [None, "", "# none\n", "secret\n", "whsec_ä\n"])
def test_a_file_without_secrets_is_rejected(tmp_path, text):
    file = tmp_path / "secrets"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError):
        load_secrets(file)
