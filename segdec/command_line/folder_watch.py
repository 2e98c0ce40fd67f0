"""Inspects what comes into a folder, one photograph after the other, until it is ended."""

import sys
from dataclasses import dataclass
from typing import Protocol

from segdec.command_line.drop_folder import DONE, FAILED, Claim, DropFolder
from segdec.command_line.incoming_files import IncomingFiles
from segdec.command_line.inspection_loop import NOT_INSPECTED
from segdec.command_line.recorded_inspector import InspectionFailedError, RecordedInspector, StoppedError
from segdec.command_line.score_text import score_text
from segdec.schemas import InspectAnswer


class FolderEventSource(Protocol):
    """What is used of `FolderEvents`."""

    @property
    def ended(self) -> bool:
        """Whether the command is to end."""

    def wait(self, seconds: float) -> None:
        """Waits until something happens, so many seconds at most."""

    def pause(self, seconds: float) -> None:
        """Waits for so many seconds, less if the command is to end."""


class StatusMessages:
    """Tells people on stderr what keeps the command, each thing once as long as it lasts."""

    def __init__(self) -> None:
        self._said: str | None = None

    def begin(self, text: str) -> None:
        """Tells that the command is at work, before there is anything else to tell."""
        print(text, file=sys.stderr, flush=True)

    def say(self, text: str | None) -> None:
        """Tells of what is waited for; None: it is over."""
        if text == self._said:
            return
        print("inspecting again" if text is None else f"waiting: {text}", file=sys.stderr, flush=True)
        self._said = text

    def warn(self, text: str) -> None:
        """Tells of what keeps nothing."""
        print(f"warning: {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class FolderWatch:
    """The command at work.

    Attributes:
        folder: Whose photographs are inspected.
        arrivals: Knows which of them are whole.
        delivery: Has them inspected.
        events: Wake it, and end it.
        notices: Tell what it waits for.
        settle_s: Seconds after which a photograph is whole that has not changed.
        scan_interval_s: Seconds after which the folder is looked at, whatever happens.
        answers: Whether each answer is written beside its photograph.
    """

    folder: DropFolder
    arrivals: IncomingFiles
    delivery: RecordedInspector
    events: FolderEventSource
    notices: StatusMessages
    settle_s: float
    scan_interval_s: float
    answers: bool = False

    def run(self) -> None:
        """Works until it is ended. A photograph whose answer is awaited then stays where it is.

        Raises:
            ServiceError: If the service would refuse every photograph.
            BrokenPipeError: If nobody reads what is printed.
        """
        self.folder.remove_temporary_files()
        while not self.events.ended:
            try:
                found = self.inspect_available()
            except StoppedError:
                return
            except BrokenPipeError:  # nobody reads the rows any more
                raise
            except OSError as error:  # the folder has gone, or its disk is full
                self.notices.say(f"{error.filename or 'the folder'}: {error.strerror or error}")
                self.events.pause(self.scan_interval_s)
                continue
            if not found and self.arrivals.waiting:
                self.events.pause(self.settle_s / 2)
            elif not found:
                self.events.wait(self.scan_interval_s)

    def inspect_available(self) -> bool:
        """Inspects what is left of before and what is whole now; returns whether there was any.

        Raises:
            StoppedError: If the command is to end before.
            OSError: If the folder cannot be read or written. Everything is where it is found again.
        """
        self.folder.prepare()
        claims = list(self.folder.claims())
        for claim in claims:
            self._inspect(claim)
        stable_files = self.arrivals.stable_files()
        for path in stable_files:
            if self.events.ended:
                raise StoppedError
            new = self.folder.claim(path)
            if new is not None:
                self._inspect(new)
        return bool(claims or stable_files)

    def _inspect(self, claim: Claim) -> None:
        name = claim.path.name
        try:
            answer = self.delivery.inspect(claim)
        except InspectionFailedError as error:
            self.folder.finish(claim, FAILED, error.as_json(name))
            _print_row(name, NOT_INSPECTED, error.code)
            return
        told = f"{answer.model_dump_json(indent=1)}\n" if self.answers else None
        self.folder.finish(claim, DONE, told)
        _print_row(name, *_describe(answer))


def _describe(answer: InspectAnswer) -> tuple[str, ...]:
    decision = answer.decision
    score, threshold = score_text(decision.score, decision.threshold, decision.review_threshold)
    return decision.label, score, threshold, f"record {answer.record_id or 'none'}"


def _print_row(name: str, *words: str) -> None:
    print(name if name.isprintable() else ascii(name), *words, sep="\t", flush=True)
