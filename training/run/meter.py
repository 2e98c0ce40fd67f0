"""The progress of a stage: a progress bar or one line per validation, and metrics for the log."""

import math
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from segdec.errors import RunError
from segdec.runtime.cli import progress_bar
from training.formatting import format_duration
from training.optimization.flops import Workload

BAR = "{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"


class NonFiniteError(RunError):
    """The loss or another metric of a step is not finite; `step` is the first step with such a value."""

    def __init__(self, stage: str, step: int, name: str, value: float) -> None:
        super().__init__(
            f"The {name} of stage '{stage}' became {value} at step {step}. "
            f"Expected a finite number: lower --stages.{stage}.learning-rate."
        )
        self.stage, self.step, self.name, self.value = stage, step, name, value


class Meter:
    """Shows the steps of one stage on stderr: a bar on a terminal, otherwise one line per validation.

    Metrics of a step stay on the device until they are read, so that the host does not wait at each step.
    `step` counts on from the `first` completed ones, each of `batch_size` images.
    """

    def __init__(
        self,
        stage: str,
        batch_size: int,
        first: int,
        steps: int,
        *,
        shown: bool = True,
        workload: Workload | None = None,
    ) -> None:
        self._stage = stage
        self._batch_size = batch_size
        self._workload = workload
        self._first, self._total = first, steps
        self._opened = time.perf_counter()
        self.step = first
        # Without smoothing, the remaining time includes validations and checkpoints.
        self._bar = progress_bar(
            total=steps,
            initial=first,
            desc=f"{stage:<8}",
            unit="step",
            bar_format=BAR,
            smoothing=0,
            dynamic_ncols=True,
            shown=shown,
        )
        self._prints = shown and bool(self._bar.disable)
        self._shown: dict[str, str] = {}
        self._unread: list[Mapping[str, Any]] = []
        self._last: dict[str, float] = {}
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def advance(self, losses: Mapping[str, Any], wait_s: float) -> None:
        """Counts one step that waited `wait_s` for its batch; losses may be tensors not yet computed."""
        self._unread.append(dict(losses))
        self._waited_s += wait_s
        self._steps += 1
        self.step += 1
        self._bar.update()

    def set_total(self, steps: int) -> None:
        """Changes the number of steps of the stage."""
        self._total = self._bar.total = steps

    def check(self) -> None:
        """Waits for the steps so far; raises a `NonFiniteError` for their first value that is not finite."""
        first = self.step - len(self._unread) + 1
        unread, self._unread = self._unread, []
        for step, losses in enumerate(unread, start=first):
            values = {name: float(loss) for name, loss in losses.items()}
            for name, value in values.items():
                if not math.isfinite(value):
                    raise NonFiniteError(self._stage, step, name, value)
            self._last = values

    def read(self) -> dict[str, float]:
        """Returns the losses of the last step, and the speed since the last reading; empty without a step.

        Losses are not averaged: a resumed run could not reproduce the average. `input_wait` is the fraction
        0…1 of the time spent waiting for input. Time within `paused` does not count.

        Raises:
            NonFiniteError: See `check`.
        """
        self.check()
        if not self._steps:
            return {}
        elapsed_s = time.perf_counter() - self._since - self._paused_s
        speed = {
            "images_per_s": self._steps * self._batch_size / elapsed_s,
            "s_per_step": elapsed_s / self._steps,
            "input_wait": min(self._waited_s / elapsed_s, 1.0),
        }
        if self._workload is not None:
            speed.update(self._workload.speed(speed["s_per_step"]))
        self._start()
        self._show_step(self._last["loss"], speed)
        return {**self._last, **speed}

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Excludes the time of the block, such as validation and checkpoints.

        Raises:
            NonFiniteError: See `check`; the block does not run, so that no such weights are saved.
        """
        self.check()
        began = time.perf_counter()
        try:
            yield
        finally:
            self._paused_s += time.perf_counter() - began

    def show_validation(self, metrics: Mapping[str, float | None], *, synthetic: bool = False) -> None:
        """Shows the metrics of a validation, and whether it used synthetic defects."""
        for name, value in (("AP", metrics["average_precision"]), ("pixel F1", metrics["pixel_f1"])):
            self._shown[name] = f"{name} –" if value is None else f"{name} {value:.3f}"
        if synthetic:
            self._shown["AP"] += " on synthetic defects"
        if self._prints:
            text = f"{self._stage} {self.step}/{self._total}: {self._shown['AP']}{self._left()}"
            print(text, file=sys.stderr)
        self._refresh()

    def _left(self) -> str:
        taken, left = self.step - self._first, self._total - self.step
        if not taken or not left:
            return ""
        s_per_step = (time.perf_counter() - self._opened) / taken
        return f", about {format_duration(s_per_step * left)} of this stage left"

    def _start(self) -> None:
        self._steps = 0
        self._since, self._paused_s, self._waited_s = time.perf_counter(), 0.0, 0.0

    def _show_step(self, loss: float, speed: Mapping[str, float]) -> None:
        self._shown = {
            "loss": f"loss {loss:.4g}",
            **{name: self._shown[name] for name in ("AP", "pixel F1") if name in self._shown},
            "images_per_s": f"{speed['images_per_s']:.3g} images/s",
            "s_per_step": f"{speed['s_per_step']:.3g} s/step",
            "input_wait": f"input wait {speed['input_wait']:.0%}",
        }
        self._refresh()

    def _refresh(self) -> None:
        self._bar.set_postfix_str(", ".join(self._shown.values()))
