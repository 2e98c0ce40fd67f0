import pytest

from segdec.runtime.label_names import Meaning, affirmed_name, label_meaning, names_usual_defect, negated_name

LABELS = {
    Meaning.GOOD: (
        "good|OK|okay|i.O.|io|PASS|passed|normal|gut|Gutteil|Gutteile|no defect|NoDefects|Non-defective|"
        "non_anomalous|No defects|Without defect|w/o defect|Undamaged|Not defective|not abnormal|"
        "defect-free|defect free|free of defects|zero defects|no visible damage|flawless|faultless|intact|"
        "OK_2|good parts|GoodParts|OKParts|iO-Teile|normal images|OK, no defect|fehlerfrei|Fehlerfreie|"
        "ohne Fehler|kein Fehler|keine Mängel|keine Maengel|keine Ma\u0308ngel|mängelfrei|unbeschädigt|"
        "unbeschaedigt|nicht beschädigt|nicht fehlerhaft|frei von Fehlern|makellos|einwandfrei|intakt|"
        "unversehrt|in Ordnung|ohne Befund|unauffällig|ohne Auffälligkeiten|in order|false reject|"
        "pseudo defect|Pseudofehler"
    ),
    Meaning.ANY_DEFECT: (
        "defect|defects|Defective|NOK|notOK|not ok|non-OK|N.G.|bad|fail|rejected|not good|no good|"
        "not passed|not undamaged|abnormal|unnormal|anomaly|n.i.O.|NIO|nicht i.O.|nicht in Ordnung|"
        "nicht gut|fehlerhaft|Schlechtteile|Ausschuss|defekt|not in order|false OK"
    ),
    Meaning.MAYBE_GOOD: (
        "no scratch|without burr|scratch free|burr-free|no scratches or dents|No solder|unscratched|"
        "uncracked|MT_Free|good scratch|OK with scratch|good_defect|pass_2|IO 1|0 defects|clean|healthy|"
        "acceptable|negative|none|no|nothing|background|ohne Grat|kratzerfrei|rissfrei|unzerkratzt|"
        "gut mit Kratzer|sauber|keine|Nein|defect_none|Defect: no|scratch - none|Riss: nein|goodweld|false|"
        "false_call|false alarm|false positive|Part|Teile|sample image|defectnone|ScratchNone|Kratzerkeine"
    ),
    Meaning.CLASS: (
        "scratch|Kratzer|dent|damage|Beschädigung|error|defect 1|Defect_A|NOK_2|surface defect|clean cut|"
        "fine scratch|underfill|undercut|uneven|nonfill|Non-fill|incomplete|imperfect|unclean|not clean|"
        "infeed|indent|free_end|notch|nodule|Passer|kos01|class_0|Scratch 0|open|missing|良品|?|"
        "scratch no. 1|auffällig|false negative|Part 1|nosolder|nozzle|acetone|defectno"
    ),
    Meaning.IGNORED: (
        "ignore|__ignore__|ignored|dont_care|don't care|Don\u2019t care|ignore this area|ignorieren"
    ),
}


@pytest.mark.parametrize(
    ("meaning", "label"), [(m, label) for m, t in LABELS.items() for label in t.split("|")]
)
def test_the_words_of_a_label_state_its_meaning(meaning, label):
    assert label_meaning(label) is meaning


@pytest.mark.parametrize("label", ["a" * 10**6, "un" * 10**6, "no " * 10**6, "a b " * 10**6])
def test_a_label_of_any_length_is_read_at_once(label):
    assert label_meaning(label) in (Meaning.CLASS, Meaning.MAYBE_GOOD)
    assert affirmed_name(label) is not None


@pytest.mark.parametrize(
    ("name", "negation"),
    [
        ("scratch", "no scratch"),
        ("Scratches", "unscratched"),
        ("burrs", "burr-free"),
        ("scratched part", "unscratched part"),
        ("Riss", "rissfrei"),
        ("Grat", "ohne Grat"),
        ("solder", "No solder"),
        ("complete", "incomplete"),
    ],
)
def test_a_negation_has_the_name_of_what_it_negates(name, negation):
    assert negated_name(negation) == affirmed_name(name)
    assert negated_name(name) is None


def test_usual_defects_are_known_in_all_their_forms():
    assert all(map(names_usual_defect, ["scratch", "Cracked", "burrs", "Kratzer", "zerkratzt"]))
    assert not any(map(names_usual_defect, ["solder", "cap", "complete"]))
