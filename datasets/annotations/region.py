"""A shape and what people call it."""

from dataclasses import dataclass

from datasets.annotations.drawn_mask import Shape


@dataclass(frozen=True)
class Region:
    """One shape with its label.

    Attributes:
        label: As the annotation tool has it.
        shape: What is drawn.
        rough: Whether it is a rectangle around the defect, not the defect itself.
    """

    label: str
    shape: Shape
    rough: bool = False
