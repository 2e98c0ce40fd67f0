"""How a model is refused that holds what no export writes."""

from pathlib import Path

from segdec.errors import ArtifactError


def unexpected_content(path: Path, what: str, allowed: str) -> ArtifactError:
    """Returns the error for a file that holds `what`, where only `allowed` is expected."""
    return ArtifactError(
        f"{path} holds {what}. Expected {allowed}. It may do more than compute, so nothing of it was loaded. "
        "Export the model again from its run with this version of segdec, or ask whoever made it; a layer of "
        "your own: see docs/extending.md."
    )
