"""Baseline with labels: small regularised two-stage heads on the cached features of a frozen encoder.

Features of strides 4, 8 and 16 are joined at stride 8. Each of three heads is trained without one of three
folds of the training photographs; the score is the mean of their decisions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import keras
import numpy as np
import tensorflow as tf
from keras import layers
from numpy.typing import NDArray

from benchmarks.suite.features import Encode, Floats, read_batches
from datasets.sample import DataSetItem, Sample
from segdec.config import STRIDE

HEADS = 3
STEPS = 600
BATCH = 8
LEARNING_RATE, WEIGHT_DECAY, DROPOUT = 2e-3, 1e-3, 0.2
POSITIVE_WEIGHT, DECISION_WEIGHT = 3.0, 0.3
DILATION_PX = 5
MIN_COVER = 0.3
"""Share of the defect in some pixel of a cell from which the cell is defective."""

STATISTICS_STEP = 7
"""Every seventh training photograph gives the statistics that features are standardised with."""


@dataclass(frozen=True)
class TrainingData:
    """Training photographs.

    Attributes:
        features: float16 [N, h, w, C].
        cells: [N, h, w, 1], 1 where a defect is.
        known: [N], 1 if the cells are known.
        labels: [N], 1 if defective.
    """

    features: NDArray[np.float16]
    cells: Floats
    known: Floats
    labels: Floats


def score(
    train: Sequence[DataSetItem],
    test: Sequence[DataSetItem],
    encode: Encode,
    size: tuple[int, int],
    steps: int = STEPS,
) -> list[float]:
    """Trains the heads and returns the score of each test photograph."""
    keras.utils.set_random_seed(0)
    random, data = np.random.default_rng(0), read_training(train, encode, size)
    folds = np.empty(len(train), int)
    for label in (0, 1):
        (own,) = np.nonzero(data.labels == label)
        folds[random.permutation(own)] = np.arange(len(own)) % HEADS
    heads = [train_head(data, np.flatnonzero(folds != fold), steps, random) for fold in range(HEADS)]
    scores: list[float] = []
    for images, _ in read_batches(test, size):
        features = tf.cast(join(encode(images)), tf.float32)
        scores += np.mean([head(features, training=False)[1] for head in heads], 0)[:, 0].tolist()
    return scores


def join(features: Sequence[tf.Tensor]) -> tf.Tensor:
    """Joins features of strides 4, 8 and 16 at stride 8, averaged over 3 × 3 cells: float16 [B, h, w, C]."""
    fine, middle, coarse = features
    same = [tf.nn.avg_pool2d(fine, 2, 2, "SAME"), middle, tf.image.resize(coarse, middle.shape[1:3])]
    return tf.cast(tf.nn.avg_pool2d(tf.concat(same, -1), 3, 1, "SAME"), tf.float16)


def read_training(items: Sequence[DataSetItem], encode: Encode, size: tuple[int, int]) -> TrainingData:
    """Encodes the training photographs."""
    features, samples = [], []
    for images, read in read_batches(items, size):
        features.append(join(encode(images)).numpy())
        samples += [(_cells(sample, size), sample.mask is not None or not sample.label) for sample in read]
    cells, known = zip(*samples, strict=True)
    labels = np.array([item.label > 0 for item in items], np.float32)
    return TrainingData(np.concatenate(features), np.stack(cells), np.array(known, np.float32), labels)


def train_head(
    data: TrainingData, chosen: NDArray[np.int64], steps: int, random: np.random.Generator
) -> keras.Model:
    """Trains a head on the chosen photographs; half of each batch is defective, and features are flipped."""
    statistics = data.features[::STATISTICS_STEP].astype(np.float32)
    head = build_head(statistics.mean((0, 1, 2)), statistics.std((0, 1, 2)) + 1e-3)
    rate = keras.optimizers.schedules.CosineDecay(LEARNING_RATE, steps)
    optimizer = keras.optimizers.AdamW(rate, weight_decay=WEIGHT_DECAY)

    @tf.function
    def step(features: tf.Tensor, cells: tf.Tensor, known: tf.Tensor, labels: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            mask, decision = head(features, training=True)
            pixel = tf.nn.weighted_cross_entropy_with_logits(cells, mask, POSITIVE_WEIGHT)
            image = tf.nn.sigmoid_cross_entropy_with_logits(labels[:, None], decision)
            loss = tf.reduce_mean(known[:, None, None, None] * pixel)
            loss += DECISION_WEIGHT * tf.reduce_mean(image)
        optimizer.apply_gradients(
            zip(tape.gradient(loss, head.trainable_variables), head.trainable_variables, strict=True)
        )

    kinds = [chosen[data.labels[chosen] == label] for label in (1, 0)]
    for _ in range(steps):
        batch = np.concatenate([random.choice(kind, BATCH // 2) for kind in kinds])
        flips = tuple(axis for axis in (1, 2) if random.random() < 0.5)
        features, cells = (np.flip(array[batch], flips) for array in (data.features, data.cells))
        arrays = (features, cells, data.known[batch], data.labels[batch])
        step(*(tf.constant(np.ascontiguousarray(array, np.float32)) for array in arrays))
    return head


def build_head(mean: Floats, deviation: Floats) -> keras.Model:
    """Builds features [B, h, w, C] → mask logits [B, h, w, 1] and defect logit [B, 1]."""
    features = keras.Input((None, None, len(mean)))
    x = layers.Normalization(mean=mean, variance=deviation**2)(features)
    x = layers.SpatialDropout2D(DROPOUT)(x)
    x = layers.Conv2D(96, 1, activation="relu")(x)
    x = layers.Conv2D(64, 5, padding="same", activation="relu")(x)
    x = layers.Dropout(DROPOUT)(x)
    mask = layers.Conv2D(1, 1)(x)
    pooled = [
        pool()(each)
        for each in (x, mask)
        for pool in (layers.GlobalMaxPooling2D, layers.GlobalAveragePooling2D)
    ]
    return keras.Model(features, [mask, layers.Dense(1)(layers.Concatenate()(pooled))])


def _cells(sample: Sample, size: tuple[int, int]) -> Floats:
    """The cells of a mask, [h, w, 1]; zeros without one."""
    rows, columns = (side // STRIDE for side in size)
    if sample.mask is None:
        return np.zeros((rows, columns, 1), np.float32)
    kernel = np.ones((DILATION_PX, DILATION_PX))
    defect = cv2.dilate((sample.mask > 0).astype(np.float32), kernel)
    cover = cv2.resize(defect, size[::-1], interpolation=cv2.INTER_AREA)
    cells = cover.reshape(rows, STRIDE, columns, STRIDE).max((1, 3)) > MIN_COVER
    return np.asarray(cells[..., None], np.float32)
