"""Image files, masks and polygons: strict decoding, checks, drawing."""
