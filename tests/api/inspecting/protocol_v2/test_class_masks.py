import base64

import numpy as np

from segdec.images import decode_image

INFER = "/v2/models/unnamed/infer"


def ask(client, part: bytes, *outputs: str):
    encoded = base64.b64encode(part).decode()
    body = {"inputs": [{"name": "image", "shape": [1], "datatype": "BYTES", "data": [encoded]}]}
    named = {"outputs": [{"name": name} for name in outputs]} if outputs else {}
    return client.post(INFER, json={**body, **named})


def test_class_mask_is_an_output(client, predictor, part):
    predictor.have_classes(spot_from=14)
    outputs = {output["name"]: output for output in ask(client, part).json()["outputs"]}
    assert list(outputs)[-2:] == ["mask", "class_mask"]
    (packed,) = outputs["class_mask"]["data"]
    classes = decode_image(base64.b64decode(packed), "mask").pixels[..., 0]
    assert np.unique(classes).tolist() == [0, 1, 2]
    described = client.get("/v2/models/unnamed").json()["outputs"]
    assert [one["name"] for one in described] == list(outputs)


def test_model_with_one_mask_has_no_such_output(client, part):
    assert [output["name"] for output in ask(client, part).json()["outputs"]][-1] == "mask"
    refused = ask(client, part, "class_mask")
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_tensor")
    assert "This model has no output 'class_mask'" in refused.json()["detail"]
