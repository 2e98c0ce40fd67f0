import hashlib
from unittest.mock import Mock

import pytest
from starlette.datastructures import Headers

from api.accounts.keys import Key, Keyring, make_key, print_new_key, read_keys
from api.errors import RequestError
from api.roles import KeyRole
from segdec.errors import ConfigError

DIGEST = hashlib.sha256(b"open sesame").hexdigest()


def key(name: str, secret: str, role: KeyRole = "predict") -> Key:
    return Key(name, hashlib.sha256(secret.encode()).digest(), role)


@pytest.fixture
def keyring() -> Keyring:
    return Keyring(
        {
            "predict": [key("line-1", "one"), key("line-2", "two")],
            "admin": [key("supervisor", "three", "admin")],
        }
    )


def test_file_of_keys_is_read(tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"# the press shop\n\n  line-1:{DIGEST}  \nline.2:{DIGEST.upper()}\n")
    digest = bytes.fromhex(DIGEST)
    assert read_keys(file, "admin") == [Key("line-1", digest, "admin"), Key("line.2", digest, "admin")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"# one\na:{DIGEST}\nb:{DIGEST[:-1]}\n".encode(), "line 3: expected NAME:SHA256"),
        (b"segdec_plain-key\n", "line 1"),
        (b"# nothing\n\n", "holds no key"),
        (b"\xff\xfe", "not UTF-8 text"),
    ],
)
def test_unusable_file_of_keys_is_refused(content, words, tmp_path):
    file = tmp_path / "keys"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=words) as caught:
        read_keys(file, "predict")
    assert str(file) in str(caught.value)
    assert "plain-key" not in str(caught.value)
    with pytest.raises(ConfigError, match="Cannot read the key file"):
        read_keys(tmp_path, "predict")


def test_made_key_is_accepted(tmp_path, capsys):
    file = tmp_path / "keys"
    secret, line = make_key("line-1")
    file.write_text(line)
    keyring = Keyring({"predict": read_keys(file, "predict")})
    assert keyring.authorize("predict", Headers({"X-API-Key": secret})) == "line-1"
    assert make_key("line-1")[0] != secret
    print_new_key("line-2")
    assert "line-2:" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["", "a:b", "a b", "x" * 65, "a\n"])
def test_invalid_key_name_is_rejected(name):
    with pytest.raises(ConfigError, match="Key name"):
        make_key(name)


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"Authorization": "Bearer one"}, "line-1"),
        ({"authorization": "bearer  two "}, "line-2"),
        ({"X-API-Key": "two"}, "line-2"),
        ({"X-API-Key": "three"}, "supervisor"),
    ],
)
def test_known_key_may_predict(headers, name, keyring):
    assert keyring.authorize("predict", Headers(headers)) == name


@pytest.mark.parametrize(
    ("role", "headers", "status", "code"),
    [
        ("predict", {}, 401, "missing_key"),
        ("predict", {"Authorization": "one"}, 401, "missing_key"),
        ("predict", {"X-API-Key": DIGEST}, 401, "unknown_key"),
        ("predict", {"X-API-Key": "\xff\x00\xc3\xa9"}, 401, "unknown_key"),
        ("predict", {"Authorization": "Bearer wrong", "X-API-Key": "one"}, 401, "unknown_key"),
        ("admin", {"X-API-Key": "one"}, 403, "not_admin"),
    ],
)
def test_other_keys_are_refused(role, headers, status, code, keyring):
    with pytest.raises(RequestError) as caught:
        keyring.authorize(role, Headers(headers))
    assert (caught.value.status, caught.value.code) == (status, code)
    assert caught.value.headers == ({"WWW-Authenticate": "Bearer"} if status == 401 else {})


def test_each_key_is_compared_with_all(keyring, monkeypatch):
    compare = Mock(side_effect=lambda kept, sent: kept == sent)
    monkeypatch.setattr("api.accounts.keys.hmac.compare_digest", compare)
    keyring.authorize("predict", Headers({"X-API-Key": "one"}))
    assert compare.call_count == 3


def test_key_in_both_files_is_an_admins():
    both = Keyring({"predict": [key("line-1", "one")], "admin": [key("supervisor", "one", "admin")]})
    assert both.authorize("admin", Headers({"X-API-Key": "one"})) == "supervisor"
    logins = [("supervisor", "one"), ("supervisor", "two"), ("line-1", "one"), ("", "")]
    assert [both.check_login(*login) for login in logins] == [True, False, False, False]


def test_a_key_of_a_training_worker_may_do_nothing_else():
    keyring = Keyring({"train": [key("gpu-1", "one", "train")], "admin": [key("supervisor", "two", "admin")]})
    worker, supervisor = (Headers({"X-API-Key": secret}) for secret in ("one", "two"))
    assert keyring.authorize("train", worker) == "gpu-1"
    assert keyring.requires_key("train")
    for role, headers in (("review", worker), ("admin", worker), ("train", supervisor)):
        with pytest.raises(RequestError) as caught:
            keyring.authorize(role, headers)
        assert (caught.value.status, caught.value.code) == (403, f"not_{role}")
    assert not keyring.check_login("gpu-1", "one")
    alone = Keyring({"train": [key("gpu-1", "one", "train")]})  # as on a laptop: everybody may review
    assert not any((alone.has_keys, alone.requires_key("review"), alone.requires_key("predict")))
    with pytest.raises(RequestError, match="No train keys are set"):
        Keyring({"admin": [key("supervisor", "two", "admin")]}).authorize("train", supervisor)


def test_without_files_everyone_predicts_and_nobody_reloads():
    keyring, headers = Keyring({}), Headers({"X-API-Key": "anything"})
    assert not keyring.requires_key("predict")
    with pytest.raises(RequestError, match="--admin-keys FILE") as caught:
        keyring.authorize("admin", headers)
    assert (caught.value.status, caught.value.code) == (403, "admin_off")
