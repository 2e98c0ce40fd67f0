"""A trained network to an artifact, for each engine."""
