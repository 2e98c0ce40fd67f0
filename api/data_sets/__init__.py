"""Data sets: photographs with annotations by people, and versions of them that never change."""
