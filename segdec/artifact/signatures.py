"""Signs artifacts with Ed25519. A signature covers the manifest, whose checksums cover all other files.

    model/
    └── signatures/
        └── 3f1c0a….sig    64 bytes, named after the key; one file per key

A signature shows who approved a model. It does not change the model's identity.
"""

import hashlib
import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from segdec.errors import ArtifactError, ConfigError, MissingExtraError
from segdec.runtime.files import write_bytes_atomic

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNATURES = "signatures"
SIGNATURE_BYTES = 64
MAX_KEY_BYTES = 2**16

KEYGEN_HINT = "Generate a key pair with: segdec keygen NAME.key"

_PUBLIC_KEYS = re.compile(rb"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)


@dataclass(frozen=True)
class TrustedKeys:
    """Public keys by identifier, from the file `source`; a model that one of them signed may be loaded."""

    source: Path
    keys: Mapping[str, "Ed25519PublicKey"]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a file with one or more public keys, PEM; ignores text between them.

        Raises:
            ConfigError: If the file cannot be read, has no key, a private key, or a key of another type.
            MissingExtraError: If the extra `sign` is not installed.
        """
        data = _read_key_file(path)
        if b"PRIVATE KEY-----" in data:
            raise ConfigError(f"{path} has a private key. Expected public keys; keep the private one secret.")
        keys = {key_id(key): key for key in (_public_key(path, text) for text in _PUBLIC_KEYS.findall(data))}
        if not keys:
            raise ConfigError(f"{path} has no public key. Expected PEM, Ed25519. {KEYGEN_HINT}")
        return cls(path, keys)

    def check(self, folder: Path, manifest: bytes) -> str:
        """Returns the identifier of a trusted key that signed `manifest` of the artifact in `folder`.

        Raises:
            ArtifactError: If it is not signed, is signed by other keys, or has changed since it was signed.
        """
        from cryptography.exceptions import InvalidSignature

        changed = []
        for name, key in self.keys.items():
            signature = _read_signature(folder / SIGNATURES / f"{name}.sig")
            if signature is None:
                continue
            try:
                key.verify(signature, manifest)
            except InvalidSignature:
                changed.append(name)
            else:
                return name
        raise ArtifactError(self._explain(folder, changed))

    def _explain(self, folder: Path, changed: list[str]) -> str:
        trusted = f"Expected a signature by a key of {self.source} ({', '.join(self.keys)})"
        if changed:
            return (
                f"{folder} has changed since it was signed: the signature of the key {', '.join(changed)} "
                f"does not match its manifest. {trusted}; copy the signed model again."
            )
        others = sorted(path.stem for path in (folder / SIGNATURES).glob("*.sig"))[:8]
        if others:
            return (
                f"{folder} is signed by unknown keys ({', '.join(others)}). {trusted}; have it signed with "
                "one of them, or add its key if you trust the signer."
            )
        return f"{folder} is not signed. {trusted}: segdec sign {folder} --key PRIVATE_KEY"


def key_id(key: "Ed25519PublicKey") -> str:
    """Returns the identifier of a key: the first 16 hex digits of the SHA-256 of its 32 bytes."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]


def generate_key_pair(private: Path) -> tuple[Path, str]:
    """Generates a key pair: `private`, readable only by its owner, and the public key with the suffix `.pub`.

    Returns:
        Path of the public key, and its identifier.

    Raises:
        ConfigError: If one of the files exists or cannot be written.
        MissingExtraError: If the extra `sign` is not installed.
    """
    _require_cryptography()
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric import ed25519

    public = private.with_suffix(".pub")
    key = ed25519.Ed25519PrivateKey.generate()
    secret = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    public_pem = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    for path in (private, public):
        if path.exists():
            raise ConfigError(f"{path} exists. Expected a new name: an overwritten key cannot be recovered.")
    try:
        with os.fdopen(os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secret)
        write_bytes_atomic(public, public_pem)
    except OSError as error:
        raise ConfigError(f"{private} and {public} cannot be written: {error.strerror}.") from error
    return public, key_id(key.public_key())


def read_private_key(path: Path) -> "Ed25519PrivateKey":
    """Reads a private key, PEM; asks for its passphrase if it has one.

    Raises:
        ConfigError: If the file cannot be read or is not an Ed25519 private key.
        MissingExtraError: If the extra `sign` is not installed.
    """
    _require_cryptography()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    data, passphrase = _read_key_file(path), None
    if b"-----BEGIN ENCRYPTED" in data:
        if not sys.stdin.isatty():
            raise ConfigError(f"{path} needs a passphrase. Run the command in a terminal and type it.")
        passphrase = getpass(f"Passphrase of {path}: ").encode()
    try:
        key = serialization.load_pem_private_key(data, passphrase)
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"{path} is not a readable private key. Expected PEM, Ed25519, and the right passphrase if it "
            f"has one. {KEYGEN_HINT}"
        ) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise ConfigError(f"{path} is a key of another type. Expected Ed25519. {KEYGEN_HINT}")
    return key


def write_signature(folder: Path, manifest: bytes, key: "Ed25519PrivateKey") -> str:
    """Signs the manifest of the artifact in `folder` and returns the key's identifier.

    Raises:
        ArtifactError: If it cannot be written.
    """
    name = key_id(key.public_key())
    path = folder / SIGNATURES / f"{name}.sig"
    try:
        path.parent.mkdir(exist_ok=True)
        write_bytes_atomic(path, key.sign(manifest))
    except OSError as error:
        raise ArtifactError(f"{path} cannot be written: {error.strerror}. Check the folder.") from error
    return name


def _read_signature(path: Path) -> bytes | None:
    """Returns None if the file does not exist or is not a plain file."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with path.open("rb") as file:
            return file.read(SIGNATURE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror}. Check its permissions.") from error


def _read_key_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_KEY_BYTES)
    except OSError as error:
        raise ConfigError(f"The key file {path} cannot be read: {error.strerror}. Check the path.") from error


def _public_key(path: Path, text: bytes) -> "Ed25519PublicKey":
    _require_cryptography()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    try:
        key = serialization.load_pem_public_key(text)
    except ValueError as error:
        raise ConfigError(f"{path} has a damaged key. Expected PEM, Ed25519. {KEYGEN_HINT}") from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise ConfigError(f"{path} has a key of another type. Expected Ed25519. {KEYGEN_HINT}")
    return key


def _require_cryptography() -> None:
    try:
        import cryptography.hazmat.primitives.asymmetric.ed25519  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("cryptography", "sign") from error
