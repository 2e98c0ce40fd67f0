"""Files on disk → samples: layouts, splits, the toy set and inspection. Only shards need TensorFlow."""
