"""Headers of files that a browser saves."""

from urllib.parse import quote


def save_as(name: str) -> dict[str, str]:
    """Returns the headers with which a browser saves an answer as a file; `name` has no quotes or slashes."""
    plain = name.encode("ascii", "replace").decode().replace("?", "_")
    encoded = "" if plain == name else f"; filename*=UTF-8''{quote(name)}"
    return {"Content-Disposition": f'attachment; filename="{plain}"{encoded}'}
