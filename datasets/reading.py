"""Record → Sample: the one place where a photograph and its mask become pixels."""

from datasets.sample import Record, Sample
from segdec.errors import DatasetError
from segdec.images import read_image, read_mask


def read(record: Record) -> Sample:
    """Read the photograph and the mask of `record`.

    Returns:
        The sample: image uint8 [H, W, C], mask uint8 [H, W] (255 where any value is above 0) or None.

    Raises:
        ImageError: When a file cannot be read; the message names it.
        DatasetError: When the mask is not of the photograph's size.
    """
    image = read_image(record.image_path).pixels
    mask = None if record.mask_path is None else read_mask(record.mask_path)
    if mask is not None and mask.shape != image.shape[:2]:
        raise DatasetError(
            f"The mask {record.mask_path} is {_size(mask.shape)}, its photograph {record.image_path} is "
            f"{_size(image.shape)}. A mask has the size of its photograph: draw it anew on the photograph, "
            "or check that the two belong together."
        )
    return Sample(name=record.name, image=image, mask=mask, label=record.label)


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}×{shape[0]} pixels (width × height)"
