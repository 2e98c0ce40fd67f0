"""Examples with a defect that they did not have: a made-up one, or that of another example."""

import numpy as np

from training.config import TargetConfig
from training.data.example_source import Example, ExampleSource
from training.data.sampling import FEATURE_NOISE, SYNTHETIC, UNCHANGED
from training.data.targets import dilate
from training.synthesis.anomalies import synthesize_anomaly
from training.synthesis.transplants import transplant_defect

ANY_DEFECT = -1
"""Label of an example that shows some defect, of which nobody can say which class it has."""

TEXTURES = 2
"""Other good examples that a made-up defect is filled from."""


class SyntheticSource:
    """Gives examples as they are, or good ones with a defect; nothing of these is kept.

    Args:
        source: The examples.
        classes: How many the network knows; of two a made-up defect has the second one, of more none.
        target: Says whether masks have grown before they come here.
    """

    def __init__(self, source: ExampleSource, classes: int, target: TargetConfig) -> None:
        self._source = source
        self._label = 1 if classes == 2 else ANY_DEFECT
        self._target = target
        self._good = np.flatnonzero(np.asarray(source.labels) == 0)

    def get(self, index: int, donor: int, random: np.random.Generator) -> Example:
        """Returns the example of one turn.

        Where no defect can be made that would be seen, it stays good; where none can be transplanted, it is
        the donor itself.

        Args:
            index: Of the example.
            donor: Index of the example whose defect it gets, `SYNTHETIC`, `FEATURE_NOISE` or `UNCHANGED`. With `FEATURE_NOISE`
                the photograph stays as it is.
            random: Decides the defect.
        """
        if donor in (UNCHANGED, FEATURE_NOISE):
            return self._source[index]
        if donor == SYNTHETIC:
            return self._make_up(index, random)
        return self._transplant(index, donor, random)

    def label(self, index: int, donor: int, *, masked: bool) -> int:
        """Returns the class of the example of one turn, or `ANY_DEFECT`; `masked`: whether it has a mask."""
        if donor in (SYNTHETIC, FEATURE_NOISE):
            return self._label if masked else 0
        return self._source.labels[index if donor == UNCHANGED else donor]

    def is_supervised(self, index: int, donor: int) -> bool:
        """Returns whether the mask of the example of one turn is known."""
        return donor != UNCHANGED or self._source.supervised[index]

    def name(self, index: int, donor: int) -> str:
        """Returns how messages name the example of one turn."""
        name = self._source.name(index)
        if donor == UNCHANGED:
            return name
        given = {SYNTHETIC: "made-up defect", FEATURE_NOISE: "noise in its features"}
        return f"{name} + {given.get(donor) or self._source.name(donor)}"

    def _make_up(self, index: int, random: np.random.Generator) -> Example:
        others = random.choice(self._good, TEXTURES).tolist()
        textures = [self._source[other].image for other in others]
        good = self._source[index]
        image, mask = synthesize_anomaly(good.image, textures, random, good.area)
        if mask is not None and self._target.dilation_at == "photograph":
            mask = dilate(mask, self._target) * np.uint8(255)
        return Example(image, mask, good.area)

    def _transplant(self, index: int, donor: int, random: np.random.Generator) -> Example:
        given, good = self._source[donor], self._source[index]
        if given.mask is None:
            return given
        changed = transplant_defect(good.image, given.image, given.mask, random, good.area)
        return given if changed is None else Example(*changed, area=good.area)
