"""Labels with a meaning of their own in every data set, whatever the classes of defects are.

The words of a label decide, English or German ones: `Non-defective`, `fehlerfrei` and `OK_2` mean good, `not
OK` and `n.i.O.` a defect of any kind. A label such as `no scratch`, `clean` or `part` may mean good: a part
without a scratch may have a dent. Case, separators and accents have no effect; `ä`, `ae` and `a` are equal.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache


class Meaning(Enum):
    """What a label or one of its words means, whatever the other labels are."""

    GOOD = "no defect"
    ANY_DEFECT = "a defect of any kind"
    CLASS = "the name of a class"
    MAYBE_GOOD = "often that there is no defect, but not always"
    WITHOUT = "that there is no defect of one kind"
    IGNORED = "the class is unknown"
    NOT = "the opposite of the next word"
    NEUTRAL = "nothing, for example a part or a photograph"


def is_good(label: str) -> bool:
    """Returns whether `label` means that there is no defect, such as `good`, `i.O.` or `no defect`."""
    return label_meaning(label) is Meaning.GOOD


def is_any_defect(label: str) -> bool:
    """Returns whether `label` means a defect of any kind, such as `defect`, `NOK` or `n.i.O.`."""
    return label_meaning(label) is Meaning.ANY_DEFECT


def is_ignored(label: str) -> bool:
    """Returns whether `label` means that the class is unknown, such as LabelMe's `__ignore__`."""
    return label_meaning(label) is Meaning.IGNORED


def may_mean_good(label: str) -> bool:
    """Returns whether `label` may mean that there is no defect, such as `no scratch`, `clean` or `none`."""
    return label_meaning(label) is Meaning.MAYBE_GOOD


def plain_label(label: str) -> str:
    """Returns the label in lower case without separators."""
    return re.sub(r"[\s._-]", "", label.lower())


@lru_cache(maxsize=4096)
def label_meaning(label: str) -> Meaning:
    """Returns the meaning of a label: good, any defect, ignored, may be good, or the name of a class."""
    words = _words(label)
    if words and _COUNTED.issuperset(words) and _has_number(label):
        return Meaning.MAYBE_GOOD
    whole = _meaning_of_word("".join(words))
    if whole in (Meaning.GOOD, Meaning.IGNORED):
        return whole
    found = set(_without_negations(words)) if whole is not Meaning.ANY_DEFECT else {whole}
    if found in ({Meaning.GOOD}, {Meaning.IGNORED}):
        return found.pop()
    if found == {Meaning.ANY_DEFECT}:
        if _ZERO.match(label):
            return Meaning.MAYBE_GOOD
        is_class = _has_number(label) or not _FAULTS.isdisjoint(words)  # `defect 1`, `damage`
        return Meaning.CLASS if is_class else Meaning.ANY_DEFECT
    is_unclear = found & {Meaning.GOOD, Meaning.WITHOUT} or found in ({Meaning.MAYBE_GOOD}, {Meaning.NOT})
    if words and not _has_number(label):
        is_unclear = is_unclear or not found or Meaning.NOT in found  # `part`, but not `dent no. 1`
    return Meaning.MAYBE_GOOD if is_unclear else Meaning.CLASS


def names_usual_defect(label: str) -> bool:
    """Returns whether `label` contains a usual name of a kind of defect, such as `cracked`."""
    return any(_stem(word) in _USUAL_DEFECTS for word in _words(label))


def affirmed_name(label: str) -> str:
    """Returns the stems of the words of `label`; labels with equal stems have almost the same meaning."""
    return " ".join(_stem(word) for word in _words(label) if word not in _NEUTRAL)


def negated_name(label: str) -> str | None:
    """Returns the `affirmed_name` of what `label` negates, for example `scratch` for `unscratched`."""
    words = [word for word in _words(label) if word not in _NEUTRAL]
    if rest := [word for word in words if word not in _NEGATIONS]:
        if len(rest) < len(words):
            return " ".join(map(_stem, rest))
        if parts := [part for part in _negated_parts(rest[0], (*_PREFIXES, "in")) if len(part) > 2]:
            return " ".join(map(_stem, [parts[0], *rest[1:]]))
    return None


# === Words ===


def _folded(text: str) -> str:
    """Lower case without accents, and without an `e` that replaces the dots of an umlaut."""
    return re.sub("([aou])e", r"\1", _without_accents(text).casefold())


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    return "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))


def _vocabulary(words: str, declined: str = "") -> frozenset[str]:
    """Folded words; `declined` are German adjectives, which get their endings."""
    endings = ("", "e", "em", "en", "er", "es")
    listed = [*words.split(), *(word + ending for word in declined.split() for ending in endings)]
    return frozenset(map(_folded, listed))


_GOOD = _vocabulary(
    "good ok oks okay pass passed intact io bestanden", "gut normal intakt einwandfrei tadellos unversehrt"
)
_ANY_DEFECT = _vocabulary(
    "defect defects defective nok notok nio ng bad ko fail failed faulty anomaly anomalies anomalous "
    "abnormal reject rejects rejected fehler ausschuss",
    "schlecht defekt fehlerhaft",
)
_FAULTS = _vocabulary(
    "damage damages damaged fault faults flaw flaws flawed error errors failure failures imperfection "
    "imperfections blemish blemishes abnormality abnormalities issue issues problem problems wrong fehlern "
    "schaden schadens mangel mangels mängeln makel beschädigung beschädigungen anomalie anomalien befund "
    "auffälligkeit auffälligkeiten",
    "beschädigt schadhaft mangelhaft auffällig",
)
"""Further words for defects of any kind. They may be classes; their negations mean good."""
_MAYBE_GOOD = _vocabulary(
    "clean healthy perfect fine correct accept accepted acceptable approved qualified conform conforming "
    "conformant compliant negative background hintergrund",
    "sauber perfekt korrekt akzeptiert akzeptabel konform negativ gesund",
)
_COUNTED = frozenset({"pass", "io"})
"""Words with another meaning beside a number: a pass of a machine, an input or output."""
_NEGATIONS = _vocabulary(
    "no non not without wo zero none nothing false pseudo nein null ohne nicht nichts keins", "kein"
)
_NEUTRAL = _vocabulary(
    "part parts teil teile teilen image images img bild bilder photo photos photograph photographs foto "
    "fotos picture pictures sample samples piece pieces product products item items class klasse label "
    "state status condition zustand quality qualität area areas region regions is the this these of "
    "all alles any very sehr found detected visible present gefunden erkannt sichtbar vorhanden"
)
_IGNORED = _vocabulary("ignore ignored dontcare", "ignoriert ignorieren")
_USUAL_DEFECTS_TEXT = (
    "scratch crack dent burr stain chip rust corrosion corroded pit pore hole spot contamination dirt dust "
    "bubble wrinkle crease bent bend broken break tear torn leak deformed deformation blister fracture "
    "kratzer zerkratzt verkratzt riss delle grat fleck rost loch bruch schmutz verschmutzt blase falte "
    "lunker kerbe verformt verformung"
)

_MEANINGS = {
    **dict.fromkeys(_NEUTRAL, Meaning.NEUTRAL),
    **dict.fromkeys(_NEGATIONS, Meaning.NOT),
    **dict.fromkeys(_MAYBE_GOOD, Meaning.MAYBE_GOOD),
    **dict.fromkeys(_ANY_DEFECT | _FAULTS, Meaning.ANY_DEFECT),
    **dict.fromkeys(_IGNORED, Meaning.IGNORED),
    **dict.fromkeys(_GOOD, Meaning.GOOD),
}
_OPPOSITES = {
    Meaning.GOOD: Meaning.ANY_DEFECT,
    Meaning.ANY_DEFECT: Meaning.GOOD,
    Meaning.CLASS: Meaning.WITHOUT,
}

_PREFIXES = ("un", "non", "not", "no", "pseudo", "nicht", "kein", "keine", "ohne")
_FREE = re.compile("(?<=..)s?(free|frei)(e[mnrs]?)?$")
_LESS = re.compile("(?<=..)(less|los)(e[mnrs]?)?$")
_STEM_ENDING = re.compile("(?<=...)(ed|es|s|ern?|en|e|n|ing|ungen|ung|t|ig|y)$")
_MAX_LENGTH = 200
"""Characters of a label that are read."""
_ZERO = re.compile(r"\s*0[\s._-]*[^\W\d_]")
"""A label such as `0 defects`: a number of defects, or the number of a class."""


def _has_number(label: str) -> bool:
    return any(map(str.isdecimal, label))


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    shorter = re.sub(r"(.)\1$", r"\1", _STEM_ENDING.sub("", word))
    return word if shorter == word else _stem(shorter)


_USUAL_DEFECTS = frozenset(map(_stem, _vocabulary(_USUAL_DEFECTS_TEXT)))


def _words(label: str) -> tuple[str, ...]:
    """The folded words without numbers; `frei von X`, `X-free` become `no X`, and `i. O.` becomes `io`."""
    return _split(re.sub(r"\d+", " ", label[:_MAX_LENGTH]))


@lru_cache(maxsize=4096)
def _split(label: str) -> tuple[str, ...]:
    text = re.sub("['’`]", "", _without_accents(label))
    text = re.sub("(?<=[a-zß])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    text = _folded(" ".join(re.findall(r"[^\W\d_]+", text)))
    text = re.sub(r"\b(\w) (?=\w\b)", r"\1", text)
    text = re.sub(r"\b(non|un) (?=\w)", r"\1", text)
    text = re.sub(r"\bin (order|ordnung)\b", "io", text)
    text = re.sub(r"\b(free|frei) (of|from|von)\b", "no", text)
    return tuple(re.sub(r"^(.*) ?\b(free|frei)$", r"no \1", text).split())


def _without_negations(words: Sequence[str]) -> Iterator[Meaning]:
    """The meanings of the words with a meaning, each reversed after a negation.

    `NOT` for a negation at the end, as in `defect: none`, or alone.
    """
    negated, alone = False, True
    for meaning in map(_meaning_of_word, words):
        if meaning is Meaning.NOT:
            negated = not negated
        elif meaning is not Meaning.NEUTRAL:
            yield _OPPOSITES.get(meaning, Meaning.CLASS) if negated else meaning
            negated, alone = False, False
    if negated or (alone and not _NEGATIONS.isdisjoint(words)):
        yield Meaning.NOT


@lru_cache(maxsize=4096)
def _meaning_of_word(word: str) -> Meaning:
    """The meaning of a folded word, also of a compound such as `undamaged`, `fehlerfrei` or `gutteile`."""
    if word in _MEANINGS:
        return _MEANINGS[word]
    for part in _negated_parts(word, _PREFIXES):
        meaning = _MEANINGS.get(part)
        if meaning in (Meaning.GOOD, Meaning.ANY_DEFECT):
            return _OPPOSITES[meaning]
        if _stem(part) in _USUAL_DEFECTS:
            return Meaning.WITHOUT
    if _FREE.search(word):
        return Meaning.WITHOUT
    return _meaning_of_compound(word)


def _negated_parts(word: str, prefixes: tuple[str, ...]) -> Iterator[str]:
    """What a word may negate: itself without a negating prefix or suffix."""
    yield from (word.removeprefix(prefix) for prefix in prefixes if word.startswith(prefix))
    yield from (pattern.sub("", word) for pattern in (_FREE, _LESS) if pattern.search(word))


def _meaning_of_compound(word: str) -> Meaning:
    """The meaning of a compound whose second part is neutral or a negation: `goodparts`, `defectnone`.

    A compound such as `goodweld` may mean good.
    """
    for end in range(2, len(word) - 2):
        first, second = word[:end], word[end:]
        meaning = _MEANINGS.get(first)
        if second in _NEUTRAL and meaning in (Meaning.GOOD, Meaning.ANY_DEFECT):
            return meaning
        if second in _NEGATIONS and (meaning is Meaning.ANY_DEFECT or _stem(first) in _USUAL_DEFECTS):
            return Meaning.WITHOUT
    return Meaning.MAYBE_GOOD if word.startswith("good") else Meaning.CLASS
