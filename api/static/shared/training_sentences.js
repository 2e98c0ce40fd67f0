// What the training writes about a model: its rating, what to do next, and warnings.

import { LOCALE, translate } from "./language.js";
import { countedSentence, decimalText, sentence, translateSentences } from "./sentence.js";

const SPLITS = {
  test: translate("test photographs"),
  val: translate("validation photographs"),
  train: translate("training photographs"),
  "out-of-fold": translate("training photographs, each by models that were not trained on it"),
  evaluated: translate("evaluated photographs"),
};

const FINDINGS = [
  sentence("misses {count} of {total} defective ones (up to {bound})"),
  sentence("misses {count} of {total} defective ones"),
  sentence("rejects {count} of {total} good ones (up to {bound})"),
  sentence("rejects {count} of {total} good ones"),
  sentence("leaves {count} for review"),
];

const REASONS = [
  sentence("No photograph was evaluated."),
  countedSentence(
    "On {count} {split} photograph it {findings}; AP {ap}, by chance {chance}.",
    "On {count} {split} photographs it {findings}; AP {ap}, by chance {chance}.",
  ),
  countedSentence("On {count} {split} photograph it {findings}.", "On {count} {split} photographs it {findings}."),
  sentence("No stage trained the decision network."),
  sentence("This is closer to chance than to a model that decides correctly."),
  sentence("With so few photographs this may be by chance."),
  sentence("It decides wrong for at least half of these."),
  countedSentence(
    "After only {count} step nothing shows that the model has learnt anything.",
    "After only {count} steps nothing shows that the model has learnt anything.",
  ),
  sentence("Expected good and defective ones."),
  sentence("There is no good photograph to test with, so its false alarms are unknown."),
  sentence("There is no defective photograph to test with, so its misses are unknown."),
  countedSentence(
    "{count} defective part and {good} good are too few to test with: one of {guesses} guesses is right by chance.",
    "{count} defective parts and {good} good are too few to test with: one of {guesses} guesses is right by chance.",
  ),
  sentence("A usable model misses at most {missed} of the defective ones and does not pass at most {not_passed} of the good ones."),
  sentence("Its masks mark other pixels than the annotated ones (pixel F1 {f1})."),
  countedSentence("It misses {missed} of {count} photograph of '{name}'.", "It misses {missed} of {count} photographs of '{name}'."),
  countedSentence(
    "It gives another class to {wrong} of {count} photograph of '{name}'.",
    "It gives another class to {wrong} of {count} photographs of '{name}'.",
  ),
  sentence("There are too few parts for a 95 % interval of its miss rate."),
  sentence("There are too few parts for a 95 % interval of its rate of false alarms."),
  sentence("With so few photographs its miss rate may be {bound}."),
  sentence("With so few photographs its rate of false alarms may be {bound}."),
  sentence("The model was trained on these photographs, so the values are too good."),
  sentence("These photographs also chose weights and thresholds, so the values are too good."),
];

const ADVICE = [
  sentence("Train to the end of the stages 'decision' or 'joint'."),
  sentence("Its scores separate better than its threshold: choose another threshold (command line: python -m training calibrate)."),
  countedSentence(
    "It took {count} step, and a useful model needs at least {enough}: train {times} times as many steps; if a time limit ended the training, allow more minutes.",
    "It took {count} steps, and a useful model needs at least {enough}: train {times} times as many steps; if a time limit ended the training, allow more minutes.",
  ),
  countedSentence(
    "It learned from {count} defective photograph: add others, at least {enough} to train on.",
    "It learned from {count} defective photographs: add others, at least {enough} to train on.",
  ),
  sentence("{count} of {total} defective training photographs have no mask: draw masks, they show where the defect is."),
  sentence("Add photographs of '{name}', or check their labels."),
  countedSentence(
    "It was tested with {count} defective photograph: test with at least {enough}.",
    "It was tested with {count} defective photographs: test with at least {enough}.",
  ),
  countedSentence(
    "It was tested with {count} good photograph: test with at least {enough}.",
    "It was tested with {count} good photographs: test with at least {enough}.",
  ),
  sentence(
    "Check the labels of the errors in the report, and all labels, for example on a contact sheet (command line: python -m datasets inspect); if they are right, train longer.",
  ),
];

const WARNINGS = [
  sentence("No stage trained the decision network: the mask is trained, class and score are not."),
  sentence(
    "The threshold was set from {former} to {score} after the export: metrics, rating and report are those of the former one.",
  ),
  sentence(
    "The validation split has {good} good and {defective} defective images, too few to choose a score threshold: {score} is used.",
  ),
  sentence("Put both kinds into the validation split."),
  sentence("The miss rate is unknown, and the score is not a probability: test the model on defective parts before use."),
  sentence(
    "The threshold is based on {good} good parts and no defective one: it rejects at most {share} of the good ones ({confidence} confidence).",
  ),
  countedSentence(
    "{count} defective photograph cannot show how low the score of a defect can be: instead of the threshold with the lowest cost, one is used that rejects about {share} of the good photographs.",
    "{count} defective photographs cannot show how low the score of a defect can be: instead of the threshold with the lowest cost, one is used that rejects about {share} of the good photographs.",
  ),
  countedSentence(
    "{count} part cannot guarantee that at most {share} of the defective parts pass as good: that needs {needed} parts.",
    "{count} parts cannot guarantee that at most {share} of the defective parts pass as good: that needs {needed} parts.",
  ),
  countedSentence(
    "{count} part cannot guarantee that at most {share} of the good parts are rejected: that needs {needed} parts.",
    "{count} parts cannot guarantee that at most {share} of the good parts are rejected: that needs {needed} parts.",
  ),
  sentence("Guaranteed are {share}, with {confidence} confidence."),
  sentence(
    "The threshold calls every image good: the validation scores separate good and defective images too little for this cost of a miss.",
  ),
  sentence(
    "The threshold calls every image defective: the validation scores separate good and defective images too little for this cost of a miss.",
  ),
  sentence("Train longer, or check the labels, threshold.miss_cost and threshold.defect_rate."),
  sentence("No validation mask has a defect, so the mask threshold {score} is used."),
  sentence("Put defective images with masks into the validation split."),
  sentence("No mask threshold finds a validation defect, so the mask threshold {score} is used."),
];

const OPERATING_POINTS = [
  countedSentence(
    "{count} good part is too few to show {share}: at least {needed} are needed.",
    "{count} good parts are too few to show {share}: at least {needed} are needed.",
  ),
  countedSentence(
    "{count} defective part is too few to show {share}: at least {needed} are needed.",
    "{count} defective parts are too few to show {share}: at least {needed} are needed.",
  ),
];

const PHOTOGRAPHS = [
  sentence("{good} good and {defective} defective photographs, each scored by a network built without it"),
  countedSentence(
    "{good} good and {defective} defective photographs of validation and {more_good} good and {more_defective} defective photographs of training, scored by {count} other network",
    "{good} good and {defective} defective photographs of validation and {more_good} good and {more_defective} defective photographs of training, scored by {count} other networks",
  ),
  sentence("{good} good and {defective} defective photographs of validation"),
];

const SENTENCES = [...REASONS, ...ADVICE, ...WARNINGS, ...OPERATING_POINTS, ...PHOTOGRAPHS];
const list = new Intl.ListFormat(LOCALE, { type: "conjunction" });

const VALUES = {
  split: (text) => list.format(text.split("/").map((split) => SPLITS[split] ?? split)),
  findings: (text) => list.format(text.split(/, | and /).map((finding) => translateSentences(finding, FINDINGS))),
  ...Object.fromEntries(["ap", "chance", "f1", "score", "former", "share", "confidence"].map((name) => [name, decimalText])),
};

/** What the training wrote about a model, in the language of the page. */
export function trainingText(text) {
  return translateSentences(text, SENTENCES, VALUES);
}
