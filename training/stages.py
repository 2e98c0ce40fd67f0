"""The training stages: the parts of the network that each one trains, and their losses."""

from dataclasses import dataclass
from typing import Any

from segdec.network.network import SegDecNet


@dataclass(frozen=True)
class Stage:
    """One stage, by its name in `StagesConfig`, and the parts that it trains, each on its loss.

    A part that is not trained runs in inference mode: its weights and moving statistics stay bit-identical.
    """

    name: str
    trains_segmentation: bool
    trains_decision: bool

    def trainable_variables(self, network: SegDecNet) -> list[Any]:
        """Returns the variables that the stage trains."""
        variables: list[Any] = []
        if self.trains_segmentation:
            variables += network.segmentation.trainable_variables
        if self.trains_decision:
            variables += [one for decision in network.decisions for one in decision.trainable_variables]
        return variables

    def trainable_kernels(self, network: SegDecNet) -> list[Any]:
        """Returns the trained kernels of convolutions and dense layers, without scales and biases."""
        return [variable for variable in self.trainable_variables(network) if is_kernel(variable)]


def is_kernel(variable: Any) -> bool:
    """Returns whether a variable is the kernel of a convolution or dense layer."""
    return bool(variable.name == "kernel")


STAGES = (
    Stage("segment", trains_segmentation=True, trains_decision=False),
    Stage("decision", trains_segmentation=False, trains_decision=True),
    Stage("joint", trains_segmentation=True, trains_decision=True),
)
