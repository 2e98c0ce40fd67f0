import logging

PNG = {"Content-Type": "image/png"}


def test_request_that_is_sent_again_is_told_of_before_it_is_worked_on(client, predictor, part, caplog):
    predictor.refusal = RuntimeError("what it may have been lost by")
    sent = {**PNG, "X-Segdec-Resend": "1", "X-Request-ID": "part-7"}
    with caplog.at_level(logging.WARNING):
        assert client.post("/v1/predict", content=part, headers=sent).status_code == 500
    [told, *_] = caplog.records
    assert told.getMessage() == (
        "Request part-7 is sent again: the replica that had it before was lost with it"
    )
    assert "segdec_resent_requests_total 1.0" in client.get("/metrics").text


def test_others_are_not_counted_and_both_are_answered(client, part):
    for headers in (PNG, {**PNG, "X-Segdec-Resend": "1"}):
        assert client.post("/v1/predict", content=part, headers=headers).status_code == 200
    assert "segdec_resent_requests_total 1.0" in client.get("/metrics").text
