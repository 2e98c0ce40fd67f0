from benchmarks import exif_rotation


def test_masks_before_the_rotation_are_proposed_more_often(monkeypatch, capsys):
    monkeypatch.setattr(exif_rotation, "SURFACES", ("brushed",))
    monkeypatch.setattr(exif_rotation, "POOL", 20)
    monkeypatch.setattr(exif_rotation, "COUNTS", (20,))
    exif_rotation.main(["--sets", "2"])
    _, _, masks, _ = capsys.readouterr().out.splitlines()
    assert masks.split("|")[1:-2] == [" brushed ", " masks ", " 20 ", " 100.0% ", " 0.0% "]
