import base64

import numpy as np
import pytest

from api.labelling.sam_model import SamModel
from segdec.images import decode_mask_values


@pytest.fixture
def encoded(monkeypatch):
    """The shapes of what the encoder gets from now on."""
    shapes, encode = [], SamModel.encode

    def encode_and_record(model, image):
        shapes.append(image.shape)
        return encode(model, image)

    monkeypatch.setattr(SamModel, "encode", encode_and_record)
    return shapes


@pytest.fixture
def find_region(engineer):
    """Returns the mask that the service answers: path of a photograph, its size, clicks → bool [H, W]."""

    def find(photograph, size, *clicks):
        sent = [{"x": x, "y": y, "is_defect": is_defect} for x, y, is_defect in clicks]
        answer = engineer.post(f"{photograph}/segment", json={"clicks": sent})
        assert answer.status_code == 200, answer.text
        region, mask = answer.json(), np.zeros(size, bool)
        if region["png"] is not None:
            data = base64.b64decode(region["png"])
            part = decode_mask_values(data, "the region", max_pixels=mask.size, classes=None)
            height, width = part.shape
            mask[region["top"] : region["top"] + height, region["left"] : region["left"] + width] = part > 0
        return mask

    return find
