"""Signs artifacts, and checks who signed them: `segdec keygen`, `segdec sign`, `segdec verify`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from segdec.artifact import Artifact, open_artifact
from segdec.artifact.signatures import TrustedKeys, generate_key_pair, read_private_key, write_signature

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_signing(commands: "Commands") -> None:
    """Adds the commands to the command line."""
    keygen = commands.add_parser("keygen", help="make the pair of keys that models are signed with")
    keygen.add_argument("private", type=Path, metavar="NAME.key", help="the public one is NAME.pub beside it")
    keygen.set_defaults(run=make)

    signing = commands.add_parser("sign", help="sign a model: vouch for it")
    signing.add_argument("model", type=Path, metavar="MODEL", help="folder of the artifact")
    signing.add_argument("--key", type=Path, required=True, metavar="FILE", help="private key, PEM")
    signing.set_defaults(run=sign)

    verifying = commands.add_parser("verify", help="check that a model is what a trusted key signed")
    verifying.add_argument("model", type=Path, metavar="MODEL", help="folder of the artifact")
    verifying.add_argument(
        "--key", type=Path, required=True, metavar="FILE", help="public keys, PEM, one after another"
    )
    verifying.set_defaults(run=verify)


def make(options: argparse.Namespace) -> int:
    """Makes a pair of keys."""
    public, name = generate_key_pair(options.private)
    print(f"Wrote {options.private}, which signs: keep it where models are released, and nowhere else.")
    print(f"Wrote {public}, which checks (key {name}): give it to --require-signature.")
    return 0


def sign(options: argparse.Namespace) -> int:
    """Signs an artifact, all of whose files are checked before."""
    key = read_private_key(options.key)
    artifact = open_artifact(options.model)
    artifact.check_files()
    name = write_signature(artifact.folder, artifact.content, key)
    print(f"Signed {_describe(artifact)} with the key {name}.")
    return 0


def verify(options: argparse.Namespace) -> int:
    """Checks the signature and every file of an artifact."""
    artifact = open_artifact(options.model, TrustedKeys.read(options.key))
    artifact.check_files()
    print(f"{_describe(artifact)} is signed with the key {artifact.signed_by}; no file of it has changed.")
    return 0


def _describe(artifact: Artifact) -> str:
    return f"{artifact.manifest.name} {artifact.manifest.version} (sha256 {artifact.sha256})"
