"""Outputs of the parts of a network that were built without a fold, for the examples of this fold."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from segdec.network.network import SegDecNet
from training.data.array_cache import Arrays
from training.data.example_source import ExampleSource
from training.surface_patches import Encode


def fold_outputs(
    network: SegDecNet,
    examples: ExampleSource,
    encode: Encode,
    indices: Sequence[int],
    select: Callable[[keras.Model], dict[str, Any]],
) -> Iterator[tuple[int, Arrays]]:
    """Yields the index of each of these examples that has a fold, with its outputs and features by name.

    `select` returns outputs of a model of `SegDecNet.without_fold`. Outputs and features of an example have
    no axis for the batch.
    """
    for fold in range(network.config.folds):
        model = network.without_fold(fold, encoded=True)
        part = keras.Model(model.input, select(model))
        call = tf.function(lambda inputs, part=part: part(inputs, training=False))
        for index in indices:
            if examples.fold(index) != fold + 1:
                continue
            features = encode(examples[index].image)
            outputs = call({name: tf.constant(features[name][None], tf.float32) for name in model.input})
            yield index, {**features, **{name: one[0].numpy() for name, one in outputs.items()}}
