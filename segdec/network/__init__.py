"""The network: layers, stages, and the form of it that is served."""
