"""A ZIP file that is sent while it is written."""

import zipfile


class ZipStream:
    """Writes a ZIP file and gives its bytes away: call `take` after each file, and after `close`."""

    def __init__(self) -> None:
        self._written = _Chunks()
        self._file = zipfile.ZipFile(self._written, "w")

    def add(self, name: str, data: bytes) -> None:
        """Adds a file that is compressed already, such as a photograph."""
        self._file.writestr(name, data)

    def add_text(self, name: str, text: str) -> None:
        """Adds a text, compressed."""
        self._file.writestr(name, text, zipfile.ZIP_DEFLATED)

    def close(self) -> None:
        """Ends the ZIP file with its list of contents."""
        self._file.close()

    def take(self) -> bytes:
        """Returns what was written since the last call."""
        taken = bytes(self._written.content)
        self._written.content.clear()
        return taken


class _Chunks:
    """The part of a file's interface that `zipfile` needs to write."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, data: bytes) -> int:
        self.content += data
        return len(data)

    def flush(self) -> None:
        """Does nothing: the content is in memory."""

    close = flush
