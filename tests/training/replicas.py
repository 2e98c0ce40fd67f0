"""Batches of arrays split over replicas."""

import tensorflow as tf


def split_over_replicas(strategy, batch):
    """Gives each replica its rows of the global batch, the first ones more, the last ones perhaps none."""

    def rows(values, context):
        images, replicas = len(values), context.num_replicas_in_sync
        first, last = (-(-images * (context.replica_id_in_sync_group + end) // replicas) for end in (0, 1))
        return tf.constant(values[first:last])

    return {
        name: strategy.experimental_distribute_values_from_function(
            lambda context, values=values: rows(values, context)
        )
        for name, values in batch.items()
    }
