"""The progress of a stage: a bar or a line for each validation, the same numbers for the log."""

import math
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from segdec.errors import RunError
from segdec.runtime.cli import progress_bar
from training.optimization.flops import Workload
from training.run.durations import format_duration

BAR = "{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"


class NonFiniteError(RunError):
    """A loss, or another number of a step, stopped being finite.

    Attributes:
        stage: Name of the stage.
        step: The first step with such a number.
        name: Which number it is, such as `loss`.
        value: What it became.
    """

    def __init__(self, stage: str, step: int, name: str, value: float) -> None:
        super().__init__(
            f"The {name} of stage '{stage}' became {value} at step {step}. "
            f"Expected a finite number: lower --stages.{stage}.learning-rate."
        )
        self.stage, self.step, self.name, self.value = stage, step, name, value


class Meter:
    """Shows the steps of one stage on stderr: a bar on a terminal, else a line for each validation.

    Numbers of a step are kept as they come and turned into floats at the next reading, so that
    the host does not wait for the device at each step.

    Args:
        stage: Name of the stage.
        batch_size: Images a step.
        first: Steps already taken.
        steps: Steps of the stage.
        shown: Whether this process shows anything at all.
        workload: Of a step; None = its FLOPs are of no interest.

    Attributes:
        step: Number of the last step counted.
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
        # Without smoothing the remaining time counts validations and checkpoints with their true weight.
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
        self._kept: list[Mapping[str, Any]] = []
        self._last: dict[str, float] = {}
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def advance(self, losses: Mapping[str, Any], wait_s: float) -> None:
        """Counts one step.

        Args:
            losses: Scalars of the step, floats or tensors still being computed.
            wait_s: How long the step waited for its batch.
        """
        self._kept.append(dict(losses))
        self._waited_s += wait_s
        self._steps += 1
        self.step += 1
        self._bar.update()

    def expect(self, steps: int) -> None:
        """Takes note of how many steps the stage will take, where that changes on the way."""
        self._total = self._bar.total = steps

    def check(self) -> None:
        """Waits for the device to finish the steps so far and looks at all of their numbers.

        Raises:
            NonFiniteError: If a number is not finite; it names the first.
        """
        first = self.step - len(self._kept) + 1
        kept, self._kept = self._kept, []
        for step, losses in enumerate(kept, start=first):
            values = {name: float(loss) for name, loss in losses.items()}
            for name, value in values.items():
                if not math.isfinite(value):
                    raise NonFiniteError(self._stage, step, name, value)
            self._last = values

    def read(self) -> dict[str, float]:
        """Returns the numbers of the last step, and the speed since the last reading.

        No mean: a run that goes on from a checkpoint could not give the same one.

        Returns:
            The losses, `images_per_s`, `s_per_step`, and `input_wait`, the fraction 0…1 of the time
            spent waiting for input; of a `workload` also `model_flops_per_s` and `flop_utilisation`. Time
            within `paused` does not count. Nothing if there was no step.

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
        """Leaves the block's time out, for what is no training, such as validation and checkpoints.

        Raises:
            NonFiniteError: See `check`; the block does not run, so that no spoilt weights are kept.
        """
        self.check()
        began = time.perf_counter()
        try:
            yield
        finally:
            self._paused_s += time.perf_counter() - began

    def validated(self, metrics: Mapping[str, float | None], *, made_up: bool = False) -> None:
        """Shows the last validation, and whether it was one on made-up defects."""
        for name, value in (("AP", metrics["average_precision"]), ("pixel F1", metrics["pixel_f1"])):
            self._shown[name] = f"{name} –" if value is None else f"{name} {value:.3f}"
        if made_up:
            self._shown["AP"] += " on made-up defects"
        if self._prints:
            print(
                f"{self._stage} {self.step}/{self._total}: {self._shown['AP']}{self._left()}", file=sys.stderr
            )
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
