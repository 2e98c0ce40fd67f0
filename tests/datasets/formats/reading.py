"""Reads the annotation files of one format."""

from pathlib import Path

from datasets.formats.annotation_files import SUFFIXES, read_annotation_files
from datasets.formats.annotation_reader import AnnotationReader
from datasets.layouts.mask_pairing import separate_masks
from datasets.listing import files_below, photographs_below


def read_format(root: Path, name: str) -> AnnotationReader:
    """The reader of the format after all files below `root` were read."""
    photographs, masks = separate_masks(photographs_below(root))
    return read_annotation_files(root, [*masks, *files_below(root, *SUFFIXES)], photographs, [name])[name]
