"""Decides which inspections repeat an earlier one, and get its answer."""

import hashlib
import json

from api.errors import RequestError
from api.record.inspection import Row

KEY_BYTES = 16
REQUEST_COLUMNS = ("picture", "station", "part_id", "model")
"""What only a client determines."""
OUTCOME_COLUMNS = ("version", "manifest_sha256", "threshold", "review_threshold", "label")
"""What a repeat must have in common with its original, so that no answer of another model is returned. An
administrator can change the thresholds between two attempts of a client.
"""


def request_key(client: str, idempotency_key: str | None) -> bytes | None:
    """Returns the key of the first inspection with an Idempotency-Key; None without one."""
    return None if idempotency_key is None else _digest(client, idempotency_key)


def part_key(row: Row) -> bytes | None:
    """Returns the key of all repeats of a part's inspection; None without a part id."""
    if row["part_id"] is None:
        return None
    return _digest(row["client"], *_values(row, REQUEST_COLUMNS), *_outcome(row))


def later_request_key(row: Row) -> bytes:
    """Returns the key of a request that is sent again when model, thresholds, plan or verdict have changed;
    the first inspection keeps its own.
    """
    return _digest(row["request_key"].hex(), *_outcome(row))


def has_same_outcome(row: Row, original: Row) -> bool:
    """Returns whether two inspections have the same model, thresholds, plan and verdict."""
    return _outcome(row) == _outcome(original)


def request_differences(row: Row, original: Row) -> tuple[str, ...]:
    """Returns the names of what differs between two requests with one Idempotency-Key."""
    return tuple(name for name in REQUEST_COLUMNS if row[name] != original[name])


def mismatch_error(differences: tuple[str, ...]) -> RequestError:
    """Returns the error for an Idempotency-Key that was used with another request."""
    return RequestError(
        422,
        "idempotency_mismatch",
        f"The Idempotency-Key was already used with another {' and '.join(differences)}. Send a new key "
        "for each photograph, and the same key only when you repeat a request.",
    )


def _outcome(row: Row) -> list[str | float | None]:
    """Returns what a repeat must have in common with its original; without a plan, keys stay as they were."""
    plan = () if row["plan_sha256"] is None else ("plan_sha256",)
    return _values(row, (*OUTCOME_COLUMNS, *plan))


def _values(row: Row, names: tuple[str, ...]) -> list[str | float | None]:
    return [row[name].hex() if isinstance(row[name], bytes) else row[name] for name in names]


def _digest(*words: str | float | None) -> bytes:
    return hashlib.blake2b(json.dumps(words).encode(), digest_size=KEY_BYTES).digest()
