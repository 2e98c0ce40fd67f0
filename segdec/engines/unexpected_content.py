"""Error for a model file with content that no export writes."""

from pathlib import Path

from segdec.errors import ArtifactError


def unexpected_content(path: Path, what: str, allowed: str) -> ArtifactError:
    """Returns the error for a file with the content `what` instead of `allowed`."""
    return ArtifactError(
        f"{path} has {what}. Expected {allowed}. It might run other code, so it was not loaded. Export the "
        "model again from its run with this version of segdec, or ask its author. For layers of your own see "
        "docs/extending.md."
    )
