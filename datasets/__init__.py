"""Files on disk → samples: layouts, splits, the toy set and inspection. Loads no TensorFlow."""
