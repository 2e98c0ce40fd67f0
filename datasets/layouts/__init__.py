"""Layouts of data sets on disk: one module for each, with one function `index`."""
