"""The network: layers, stages, and its form for serving."""
