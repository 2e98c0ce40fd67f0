"""The output of one process, cut into whole lines that say whose they are."""


class PrefixedLines:
    """Turns chunks of bytes, cut anywhere and in any encoding, into lines with a prefix.

    Of a line that was rewritten after carriage returns only the last version is kept.

    Args:
        prefix: What stands before each line.
    """

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._begun = b""

    def feed(self, chunk: bytes) -> bytes:
        """The lines that end within `chunk`; what comes after them is kept for later."""
        *lines, begun = (self._begun + chunk).split(b"\n")
        self._begun = _drop_rewritten(begun)
        return b"".join(self._prefix + _drop_rewritten(line).rstrip(b"\r") + b"\n" for line in lines)

    def finish(self) -> bytes:
        """The last line, where no newline ended it."""
        return self.feed(b"\n") if self._begun else b""


def _drop_rewritten(line: bytes) -> bytes:
    """`line` from after its last carriage return that has text behind it."""
    end = len(line.rstrip(b"\r"))
    return line[line.rfind(b"\r", 0, end) + 1 :]
