"""Training examples with an added defect: a synthetic one, or that of another example."""

import numpy as np

from training.config import TargetConfig
from training.data.example_source import Example, ExampleSource
from training.data.sampling import FEATURE_NOISE, SYNTHETIC, UNCHANGED
from training.data.targets import dilate, known_area
from training.synthesis.anomalies import synthesize_anomaly
from training.synthesis.transplants import transplant_defect

ANY_DEFECT = -1
"""Label of an example with a defect of unknown class."""

TEXTURES = 2
"""Number of other good examples that a synthetic defect takes texture from."""


class SyntheticSource:
    """Returns examples unchanged, or good ones with an added defect, which are not cached.

    With two classes a synthetic defect has the defect class, with more classes `ANY_DEFECT` (unknown).
    """

    def __init__(self, source: ExampleSource, classes: int, target: TargetConfig) -> None:
        self._source = source
        self._label = 1 if classes == 2 else ANY_DEFECT
        self._target = target
        self._good = np.flatnonzero(np.asarray(source.labels) == 0)

    def get(self, index: int, donor: int, random: np.random.Generator) -> Example:
        """Returns one example of a sample order; `FEATURE_NOISE` leaves the image unchanged.

        The example stays good if no visible defect can be made. If no defect can be transplanted, the donor
        is returned.
        """
        if donor in (UNCHANGED, FEATURE_NOISE):
            return self._source[index]
        if donor == SYNTHETIC:
            return self._synthesize(index, random)
        return self._transplant(index, donor, random)

    def label(self, index: int, donor: int, *, masked: bool) -> int:
        """Returns the class of an example, or `ANY_DEFECT`; `masked`: whether it has a mask."""
        if donor in (SYNTHETIC, FEATURE_NOISE):
            return self._label if masked else 0
        return self._source.labels[index if donor == UNCHANGED else donor]

    def is_supervised(self, index: int, donor: int) -> bool:
        """Returns whether the mask of an example is known."""
        return donor != UNCHANGED or self._source.supervised[index]

    def has_boxes(self, index: int, donor: int) -> bool:
        """Returns whether the mask of an example holds boxes; that of an added defect never does."""
        return donor == UNCHANGED and self._source.has_boxes(index)

    def name(self, index: int, donor: int) -> str:
        """Returns the name of an example for messages."""
        name = self._source.name(index)
        if donor == UNCHANGED:
            return name
        added = {SYNTHETIC: "synthetic defect", FEATURE_NOISE: "feature noise"}
        return f"{name} + {added.get(donor) or self._source.name(donor)}"

    def _synthesize(self, index: int, random: np.random.Generator) -> Example:
        others = random.choice(self._good, TEXTURES).tolist()
        textures = [self._source[other].image for other in others]
        good = self._source[index]
        area = known_area(good.area, good.ignored)
        image, mask = synthesize_anomaly(good.image, textures, random, area)
        if mask is not None and self._target.dilation_at == "photograph":
            mask = dilate(mask, self._target) * np.uint8(255)
        return Example(image, mask, good.area, ignored=good.ignored)

    def _transplant(self, index: int, donor: int, random: np.random.Generator) -> Example:
        donated, good = self._source[donor], self._source[index]
        if donated.mask is None:
            return donated
        area = known_area(good.area, good.ignored)
        changed = transplant_defect(good.image, donated.image, donated.mask, random, area)
        return donated if changed is None else Example(*changed, area=good.area, ignored=good.ignored)
