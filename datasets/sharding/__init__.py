"""Data sets packed into TFRecord files."""
