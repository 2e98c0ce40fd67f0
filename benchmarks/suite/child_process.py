"""Calls in a process of their own, whose end frees the memory of TensorFlow."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

from segdec.errors import RunError

P = ParamSpec("P")
T = TypeVar("T")


def call_in_process(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Returns what the function returns, or raises what it raises.

    Raises:
        RunError: If the process ends without a result.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        try:
            return process.submit(function, *arguments, **named).result()
        except BrokenProcessPool as error:
            raise RunError("The process ended without a result. Is the memory sufficient?") from error
