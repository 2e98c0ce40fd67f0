"""The answer of a service to a photograph with a defect, as JSON."""

from typing import Any

SERVICE_ANSWER: dict[str, Any] = {
    "id": "7",
    "model": {"name": "parts", "version": "2", "sha256": None, "field_of_a_newer_model": 1},
    "image": {"width": 2, "height": 1, "bit_depth": 8, "format": "png"},
    "decision": {
        "label": "spot",
        "score": 0.8,
        "threshold": 0.5,
        "probabilities": {"good": 0.2, "spot": 0.8},
    },
    "mask": None,
    "regions": [],
    "timing_ms": {"queue": 0, "decode": 0, "infer": 0, "encode": 0, "total": 0},
    "batch_size": 1,
    "warnings": [],
}
