// Why a photograph was not inspected, and what is unexpected about it.

import { decimalText, sentence, translateSentences } from "./sentence.js";

const REASONS = [
  sentence("black or almost black (lamp off, lens cap)"),
  sentence("white or almost white (overexposed)"),
  sentence("without contrast (one grey level or colour)"),
  sentence("of other proportions than those of the training"),
  sentence("of another size than those of the training"),
  sentence("of other colours than those of the training"),
  sentence("of another part, position or scene than those of the training"),
  sentence("of another part or surface than those of the training"),
  sentence("darker than those of the training"),
  sentence("brighter than those of the training"),
  sentence("lower in contrast than those of the training"),
  sentence("out of focus or blurred, less sharp than those of the training"),
  sentence("noisier than those of the training"),
];

const REJECTIONS = [
  sentence("The photograph is {reason}, or shows a very large defect."),
  sentence("The photograph is {reason}."),
  sentence("Expected one like those of the training: check light, camera and part."),
];

const WARNINGS = [
  sentence("unlike_training: {reason}"),
  sentence(
    "aspect: the photograph has {width} × {height} px, width / height = {ratio}; in training it was {ratios}: defects may look distorted",
  ),
  sentence("size: the photograph has {width} × {height} px, in training {widths} × {heights} px: defects may have another size"),
  sentence("bit_depth: the file has {depth} bits per channel, in training {known} or {other}"),
  sentence("bit_depth: the file has {depth} bits per channel, in training {known}"),
  sentence("the picture was rotated to its EXIF orientation"),
  sentence("the file has several pictures; the first one was used"),
  sentence("the picture has transparent pixels; its alpha was dropped"),
  sentence("all colours of the file's palette are the same, so the picture is one area; save it again"),
  sentence("the picture is nearly black: its brightest value is {value}, {field} is {white}"),
  sentence("{number} values above {field} = {white} were clipped: the highest is {highest}"),
];

const SENTENCES = [...REJECTIONS, ...WARNINGS];

const VALUES = {
  reason: (text) => translateSentences(text, REASONS),
  ratio: decimalText,
  ratios: (text) => text.split("…").map(decimalText).join("…"),
};

/** What the service says about a photograph, in the language of the page. */
export function photographText(text) {
  return translateSentences(text, SENTENCES, VALUES);
}
