"""Reads the annotation files of labelling tools, one module for each format."""
