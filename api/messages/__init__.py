"""Texts that people read, in the languages of the pages."""
