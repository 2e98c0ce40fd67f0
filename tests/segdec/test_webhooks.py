"""Signatures of webhooks, with the example of the specification."""

import pytest

from segdec.errors import ConfigError
from segdec.webhooks import SignatureError, read_secret, verify_webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'
EVENT, NOW = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330
HEADERS = {
    "webhook-id": EVENT,
    "webhook-timestamp": str(NOW),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
"""From the tests of the specification's libraries."""


def test_signature_is_that_of_the_specification():
    assert verify_webhook(SECRET, HEADERS, BODY, NOW) == EVENT


def test_one_of_several_signatures_is_enough():
    signatures = f"v1,{'A' * 44} {HEADERS['webhook-signature']}"
    assert verify_webhook(SECRET, HEADERS | {"webhook-signature": signatures}, BODY, NOW) == EVENT


@pytest.mark.parametrize(
    ("changed", "body", "now", "words"),
    [
        ({}, BODY + b" ", NOW, "No signature"),
        ({"webhook-id": "another"}, BODY, NOW, "No signature"),
        ({"webhook-timestamp": str(NOW + 1)}, BODY, NOW, "No signature"),
        ({"webhook-signature": ""}, BODY, NOW, "No signature"),
        ({"webhook-signature": "v1,é"}, BODY, NOW, "No signature"),
        ({"webhook-id": ""}, BODY, NOW, "missing"),
        ({"webhook-timestamp": "yesterday"}, BODY, NOW, "missing"),
        ({"webhook-timestamp": "٣"}, BODY, NOW, "missing"),
        ({}, BODY, NOW + 301, "differs from now"),
        ({}, BODY, NOW - 301, "differs from now"),
    ],
)
def test_changed_or_old_webhook_is_rejected(changed, body, now, words):
    with pytest.raises(SignatureError, match=words):
        verify_webhook(SECRET, HEADERS | changed, body, now)


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_short", SECRET[6:], f"{SECRET}!", "whsec_" + "A" * 88]
)
def test_secret_of_another_form_is_rejected_and_not_repeated(secret):
    with pytest.raises(ConfigError, match="openssl rand") as refusal:
        read_secret(secret)
    assert len(secret) < 8 or secret[6:] not in str(refusal.value)
