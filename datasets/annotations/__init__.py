"""Drawn masks: polygons, boxes and run lengths, read from annotation files, as mask files."""
