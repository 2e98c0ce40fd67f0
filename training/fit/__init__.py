"""One command from a folder of photographs to a model."""
