"""The network: layers, stages, and its variant for serving."""
