import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from segdec.__main__ import main
from segdec.artifact import manifest_sha256, open_artifact
from segdec.artifact.signatures import TrustedKeys, generate_key_pair, read_private_key, write_signature
from segdec.errors import ArtifactError, ConfigError, MissingExtraError
from tests.forged_artifact import forge


def sign(folder: Path, private: Path) -> str:
    return write_signature(folder, open_artifact(folder).content, read_private_key(private))


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A private key; the public key has the suffix `.pub`."""
    generate_key_pair(tmp_path / "release.key")
    return tmp_path / "release.key"


def public(*private: Path) -> TrustedKeys:
    file, keys = (
        private[0].with_name("trusted.pem"),
        [key.with_suffix(".pub").read_bytes() for key in private],
    )
    file.write_bytes(b"\n".join([b"# who may release", *keys]))
    return TrustedKeys.read(file)


def refusal(folder: Path, trusted: TrustedKeys) -> str:
    with pytest.raises(ArtifactError) as caught:
        open_artifact(folder, trusted)
    return str(caught.value)


# === Keys ===


def test_private_key_permissions_and_no_overwriting(private: Path) -> None:
    assert private.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match=r"release\.key exists"):
        generate_key_pair(private)
    private.unlink()
    with pytest.raises(ConfigError, match=r"release\.pub exists"):
        generate_key_pair(private)
    assert not private.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "has no public key"),
        (b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "damaged key"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\n", "has a private key"),
    ],
)
def test_invalid_trusted_keys(content: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        TrustedKeys.read(tmp_path / "trusted.pem")
    (tmp_path / "trusted.pem").write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        TrustedKeys.read(tmp_path / "trusted.pem")


def test_keys_of_another_kind_are_rejected(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as kinds
    from cryptography.hazmat.primitives.asymmetric import ec

    key, pem, path = ec.generate_private_key(ec.SECP256R1()), kinds.Encoding.PEM, tmp_path / "key"
    path.write_bytes(key.public_key().public_bytes(pem, kinds.PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(ConfigError, match=r"a key of another type\. Expected Ed25519"):
        TrustedKeys.read(path)
    path.write_bytes(key.private_bytes(pem, kinds.PrivateFormat.PKCS8, kinds.NoEncryption()))
    with pytest.raises(ConfigError, match=r"a key of another type\. Expected Ed25519"):
        read_private_key(path)


def test_invalid_private_key(private: Path) -> None:
    with pytest.raises(ConfigError, match="is not a readable private key"):
        read_private_key(private.with_suffix(".pub"))


def test_private_key_with_a_passphrase(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cryptography.hazmat.primitives import serialization as kinds

    key, locked = read_private_key(private), private.with_name("locked.key")
    encryption = kinds.BestAvailableEncryption(b"open sesame")
    locked.write_bytes(key.private_bytes(kinds.Encoding.PEM, kinds.PrivateFormat.PKCS8, encryption))
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(ConfigError, match="needs a passphrase"):
        read_private_key(locked)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("segdec.artifact.signatures.getpass", lambda _: "open sesame")
    assert read_private_key(locked).private_bytes_raw() == key.private_bytes_raw()
    monkeypatch.setattr("segdec.artifact.signatures.getpass", lambda _: "wrong")
    with pytest.raises(ConfigError, match="the right passphrase"):
        read_private_key(locked)


def test_missing_package_names_the_extra(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    with pytest.raises(MissingExtraError, match="extra 'sign'"):
        TrustedKeys.read(private.with_suffix(".pub"))


# === Signatures ===


def test_signed_model_is_accepted_and_unchanged(artifact_copy: Path, private: Path) -> None:
    before = manifest_sha256(artifact_copy)
    name = sign(artifact_copy, private)
    artifact = open_artifact(artifact_copy, public(private))
    artifact.check_files()
    assert (artifact.signed_by, artifact.sha256, manifest_sha256(artifact_copy)) == (name, before, before)
    assert [path.name for path in (artifact_copy / "signatures").iterdir()] == [f"{name}.sig"]


def test_unsigned_model_is_rejected_with_advice(artifact_copy: Path, private: Path) -> None:
    text = refusal(artifact_copy, public(private))
    assert f"is not signed. Expected a signature by a key of {private.parent}" in text


def test_model_changed_after_signing_is_rejected(artifact_copy: Path, private: Path) -> None:
    sign(artifact_copy, private)
    forge(artifact_copy, thresholds={"score": 1.0, "mask": 0.5})  # nothing is defective any more
    assert open_artifact(artifact_copy).manifest.thresholds.score == 1.0
    assert "has changed since it was signed" in refusal(artifact_copy, public(private))


def test_invalid_signature_is_rejected(artifact_copy: Path, private: Path) -> None:
    path, trusted = artifact_copy / "signatures" / f"{sign(artifact_copy, private)}.sig", public(private)
    for content in (b"", b"\0" * 64, b"\0" * 65):
        path.write_bytes(content)
        assert "has changed since it was signed" in refusal(artifact_copy, trusted)
    path.unlink()
    os.mkfifo(path)  # a device is ignored
    assert "is signed by unknown keys" in refusal(artifact_copy, trusted)


def test_old_and_new_keys_can_be_trusted_together(artifact_copy: Path, private: Path) -> None:
    """A model with both signatures is accepted with the old key, the new key, or both."""
    other = private.with_name("other.key")
    generate_key_pair(other)
    old = sign(artifact_copy, private)
    assert open_artifact(artifact_copy, public(other, private)).signed_by == old
    new = sign(artifact_copy, other)
    assert open_artifact(artifact_copy, public(private)).signed_by == old
    assert open_artifact(artifact_copy, public(other)).signed_by == new


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_openssl_makes_keys_signs_and_checks_the_same(artifact_copy: Path, tmp_path: Path) -> None:
    def openssl(*arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    key, shown = tmp_path / "their.key", tmp_path / "their.pub"
    openssl("genpkey", "-algorithm", "ed25519", "-out", key)
    openssl("pkey", "-in", key, "-pubout", "-out", shown)
    signature = artifact_copy / "signatures" / f"{sign(artifact_copy, key)}.sig"
    manifest = artifact_copy / "manifest.json"
    checked = ("-rawin", "-in", manifest, "-sigfile", signature)
    openssl("pkeyutl", "-verify", "-pubin", "-inkey", shown, *checked)
    signature.unlink()
    openssl("pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", manifest, "-out", signature)
    assert open_artifact(artifact_copy, TrustedKeys.read(shown)).signed_by == signature.stem


# === Command line ===


def test_commands_from_keys_to_an_answer(artifact_copy, tmp_path, capsys):
    key, shown = tmp_path / "release.key", tmp_path / "release.pub"
    photograph = artifact_copy / "self_test" / "photograph.png"
    for command in (
        ["keygen", key],
        ["sign", artifact_copy, "--key", key],
        ["verify", artifact_copy, "--key", shown],
        ["predict", photograph, "--model", artifact_copy, "--require-signature", shown],
    ):
        assert main(list(map(str, command))) == 0
    printed = capsys.readouterr().out
    assert f"tiny 1 (sha256 {manifest_sha256(artifact_copy)}) is signed with the key" in printed
    assert "PRIVATE KEY" not in printed
