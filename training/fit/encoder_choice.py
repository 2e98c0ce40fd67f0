"""The choice of the encoder by a limit on the time of a prediction."""

from collections.abc import Callable, Mapping, Sequence

from segdec.errors import ConfigError


def choose_encoder(names: Sequence[str], max_ms: float, measure: Callable[[str], float]) -> tuple[str, str]:
    """Returns the first network whose prediction of a photograph takes at most `max_ms`, and a message.

    Args:
        names: Networks, the best one first.
        max_ms: Limit, ms.
        measure: Returns the duration with a network, ms.

    Raises:
        ConfigError: If the limit is not above 0, or all of them take longer.
    """
    if not max_ms > 0:
        raise ConfigError(
            f"--max-ms {max_ms:g}. Expected a time above 0 ms for the prediction of a photograph."
        )
    durations: dict[str, float] = {}
    for name in names:
        durations[name] = measure(name)
        if durations[name] <= max_ms:
            return name, f"{_describe(durations)}; --max-ms {max_ms:g}"
    raise ConfigError(
        f"--max-ms {max_ms:g}: {_describe(durations)}. Expected at most {max_ms:g} ms: give a higher limit, "
        "smaller photographs, or a faster encoder, see python -m training encoders."
    )


def _describe(durations: Mapping[str, float]) -> str:
    (first, duration), *others = durations.items()
    listed = [f"{first} predicts a photograph in {duration:.3g} ms"]
    return ", ".join([*listed, *(f"{name} in {other:.3g} ms" for name, other in others)])
