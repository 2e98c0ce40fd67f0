"""An entry of the audit log."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AuditEntry:
    """A change to the service that the audit log keeps.

    Attributes:
        who: Name of the API key or of the part of the service that made the change.
        what: The action.
        before: State before the change.
        after: State after it.
    """

    who: str
    what: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
