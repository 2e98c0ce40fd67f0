"""Writes masks and overlays to a folder."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from segdec.command_line.inspectors import InspectedFile
from segdec.command_line.score_text import score_text
from segdec.errors import ConfigError
from segdec.images import write_png
from segdec.imaging.overlay import draw_overlay
from segdec.plan.zone_overlay import ZoneOverlay


class OverlayFolder:
    """Writes NAME_mask.png and NAME_overlay.png for each of `images` to `folder`.

    For a model with a mask per class also NAME_classes.png, whose pixels are class indices.

    Raises:
        ConfigError: If the folder contains the photographs, is in a folder that was `searched` for
            photographs, or cannot be created.
    """

    def __init__(self, folder: Path, images: Sequence[Path], searched: Sequence[Path] = ()) -> None:
        if any(path.absolute().parent.resolve() == folder.resolve() for path in images):
            raise ConfigError(
                f"--out {folder} contains the images themselves. Expected another folder; choose a new one."
            )
        for above in searched:
            if folder.resolve().is_relative_to(above.resolve()):
                raise ConfigError(
                    f"--out {folder} is in {above}: the next run would take its pictures for photographs. "
                    "Expected a folder elsewhere."
                )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"--out {folder} cannot be created: {error.strerror}. Choose another folder."
            ) from error
        self._folder = folder
        self._zones: ZoneOverlay | None = None  # those of the plan that all files have
        self._stems = dict(zip(images, output_stems(images), strict=True))

    def write(self, file: InspectedFile) -> InspectedFile:
        """Writes the pictures of `file`, if it has any, and returns it.

        Raises:
            ConfigError: If the folder cannot be written.
            ImageError: If mask and photograph have different sizes.
        """
        if file.pictures is None:
            return file
        pixels, mask = file.pictures.pixels, file.pictures.mask
        score, limits = score_text(file.score, file.threshold, file.review_threshold)
        caption = f"{file.label}  score {score}  threshold {limits}\n{file.reason}".rstrip()
        if file.plan is not None:
            self._zones = self._zones or ZoneOverlay(file.plan)
            pixels = self._zones.draw(pixels)
        overlay = draw_overlay(pixels, mask, area=file.pictures.area, caption=caption)
        stem = self._stems[file.path]
        try:
            write_png(self._folder / f"{stem}_mask.png", mask)
            write_png(self._folder / f"{stem}_overlay.png", overlay)
            if file.pictures.class_mask is not None:
                write_png(self._folder / f"{stem}_classes.png", file.pictures.class_mask)
        except OSError as error:
            raise ConfigError(
                f"--out {self._folder} cannot be written: {error.strerror}. Choose another folder."
            ) from error
        return file


def output_stems(images: Sequence[Path]) -> list[str]:
    """Returns a unique file name without suffix for each image.

    Duplicate stems are prefixed with the name of their folder and, if still equal, numbered.
    """
    stems = Counter(path.stem.lower() for path in images)
    taken = {stem for stem, count in stems.items() if count == 1}
    names = []
    for path in images:
        name = path.stem
        if stems[name.lower()] > 1:
            name = base = f"{path.absolute().parent.name}_{path.stem}"
            number = 1
            while name.lower() in taken:
                number += 1
                name = f"{base}-{number}"
            taken.add(name.lower())
        names.append(name)
    return names
