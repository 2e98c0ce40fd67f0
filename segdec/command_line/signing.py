"""Signs artifacts and verifies signatures: `segdec keygen`, `segdec sign`, `segdec verify`."""

import argparse
from pathlib import Path

from segdec.artifact import Artifact, open_artifact
from segdec.artifact.signatures import TrustedKeys, generate_key_pair, read_private_key, write_signature
from segdec.runtime.cli import Commands


def add_signing(commands: Commands) -> None:
    """Adds the commands to the command line."""
    keygen = commands.add_parser("keygen", help="generate the key pair that signs models")
    keygen.add_argument(
        "private", type=Path, metavar="NAME.key", help="private key; the public key becomes NAME.pub"
    )
    keygen.set_defaults(run=run_keygen)

    signing = commands.add_parser("sign", help="sign a model")
    signing.add_argument("model", type=Path, metavar="MODEL", help="folder of the artifact")
    signing.add_argument("--key", type=Path, required=True, metavar="FILE", help="private key, PEM")
    signing.set_defaults(run=run_sign)

    verifying = commands.add_parser("verify", help="verify that a trusted key signed a model")
    verifying.add_argument("model", type=Path, metavar="MODEL", help="folder of the artifact")
    verifying.add_argument("--key", type=Path, required=True, metavar="FILE", help="trusted public keys, PEM")
    verifying.set_defaults(run=run_verify)


def run_keygen(options: argparse.Namespace) -> int:
    """Generates a key pair."""
    public, name = generate_key_pair(options.private)
    print(f"Wrote the private key {options.private}. Keep it only where models are released.")
    print(f"Wrote the public key {public} (key {name}). Pass it to --require-signature.")
    return 0


def run_sign(options: argparse.Namespace) -> int:
    """Checks all files of an artifact and signs it."""
    key = read_private_key(options.key)
    artifact = open_artifact(options.model)
    artifact.check_files()
    name = write_signature(artifact.folder, artifact.content, key)
    print(f"Signed {_describe(artifact)} with the key {name}.")
    return 0


def run_verify(options: argparse.Namespace) -> int:
    """Checks the signature and every file of an artifact."""
    artifact = open_artifact(options.model, TrustedKeys.read(options.key))
    artifact.check_files()
    print(f"{_describe(artifact)} is signed with the key {artifact.signed_by}; its files are unchanged.")
    return 0


def _describe(artifact: Artifact) -> str:
    return f"{artifact.manifest.name} {artifact.manifest.version} (sha256 {artifact.sha256})"
