"""What stands in the audit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AuditEntry:
    """A change to be found again.

    Attributes:
        who: Name of a key, or of a part of the service.
        what: Happened.
        before: What was there.
        after: What is there now.
    """

    who: str
    what: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
