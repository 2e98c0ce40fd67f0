"""Data sets packed into TFRecord files, and the file systems they lie on."""
