"""Examples with a defect that they did not have: a made-up one, or that of another example."""

import numpy as np

from training.config import TargetConfig
from training.data.example_source import Example, ExampleSource
from training.data.made_up_defects import make_up_defect
from training.data.sampling import AS_IT_IS, MADE_UP, NOISE
from training.data.targets import grow
from training.data.transplants import transplant_defect

ANY_DEFECT = -1
"""Label of an example that shows some defect, of which nobody can say which class it has."""

TEXTURES = 2
"""Other good examples that a made-up defect is filled from."""


class MadeUpSource:
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
            donor: Index of the example whose defect it gets, `MADE_UP`, `NOISE` or `AS_IT_IS`. With `NOISE`
                the photograph stays as it is.
            random: Decides the defect.
        """
        if donor in (AS_IT_IS, NOISE):
            return self._source[index]
        if donor == MADE_UP:
            return self._make_up(index, random)
        return self._transplant(index, donor, random)

    def label(self, index: int, donor: int, *, masked: bool) -> int:
        """Returns the class of the example of one turn, or `ANY_DEFECT`; `masked`: whether it has a mask."""
        if donor in (MADE_UP, NOISE):
            return self._label if masked else 0
        return self._source.labels[index if donor == AS_IT_IS else donor]

    def is_supervised(self, index: int, donor: int) -> bool:
        """Returns whether the mask of the example of one turn is known."""
        return donor != AS_IT_IS or self._source.supervised[index]

    def name(self, index: int, donor: int) -> str:
        """Returns how messages name the example of one turn."""
        name = self._source.name(index)
        if donor == AS_IT_IS:
            return name
        given = {MADE_UP: "made-up defect", NOISE: "noise in its features"}
        return f"{name} + {given.get(donor) or self._source.name(donor)}"

    def _make_up(self, index: int, random: np.random.Generator) -> Example:
        others = random.choice(self._good, TEXTURES).tolist()
        textures = [self._source[other].image for other in others]
        good = self._source[index]
        image, mask = make_up_defect(good.image, textures, random, good.area)
        if mask is not None and self._target.dilation_at == "photograph":
            mask = grow(mask, self._target) * np.uint8(255)
        return Example(image, mask, good.area)

    def _transplant(self, index: int, donor: int, random: np.random.Generator) -> Example:
        given, good = self._source[donor], self._source[index]
        if given.mask is None:
            return given
        changed = transplant_defect(good.image, given.image, given.mask, random, good.area)
        return given if changed is None else Example(*changed, area=good.area)
