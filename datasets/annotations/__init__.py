"""Reads polygons, boxes and run lengths from annotation files and draws them as masks."""
