"""From a decoded photograph to a prediction: preprocessing, batching, tiling, postprocessing."""
