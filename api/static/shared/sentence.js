// Sentences that the service sends in English: recognised by their texts, and shown in the language of the page.

import { formatDecimals, LANGUAGE, translate, translateCount } from "./language.js";

const VALUE = "(?:(?!\\. ).)+?"; // within one sentence
const NUMBER = "\\d+";
const NUMBERS = new Set(["count", "total"]); // names of whole numbers
const SPACE_OR_END = "(?=\\s|$)";

/** A sentence; `{name}` is a value in it. */
export function sentence(text) {
  return { patterns: [patternOf(text)], show: (values) => translate(text, values) };
}

/** A sentence about a count, `{count}`. */
export function countedSentence(one, other) {
  return { patterns: [patternOf(one), patternOf(other)], show: ({ count, ...values }) => translateCount(Number(count), one, other, values) };
}

/**
 * `text` with the sentences of `known` in the language of the page; others stay in English.
 *
 * `values`: functions by the name of a value, which translate it.
 */
export function translateSentences(text, known, values = {}) {
  if (LANGUAGE === "en") return text;
  let shown = "";
  for (let start = 0; start < text.length; ) {
    const [end, translated] = readSentence(text, start, known, values);
    shown += translated + text.slice(end, end + 1); // the space after it
    start = end + 1;
  }
  return shown;
}

/** A number, or a percentage, with as many decimals, as the language writes it. */
export function decimalText(text) {
  return text.replace(/^\d+\.(\d+)(?= %$|$)/, (number, decimals) => formatDecimals(Number(number), decimals.length));
}

function readSentence(text, start, known, values) {
  for (const { patterns, show } of known) {
    for (const pattern of patterns) {
      pattern.lastIndex = start;
      const match = pattern.exec(text);
      if (match) return [pattern.lastIndex, show(translateValues(match.groups ?? {}, values))];
    }
  }
  const stop = text.indexOf(". ", start);
  const end = stop < 0 ? text.length : stop + 1;
  return [end, text.slice(start, end)];
}

function translateValues(found, values) {
  return Object.fromEntries(Object.entries(found).map(([name, value]) => [name, values[name] ? values[name](value) : value]));
}

function patternOf(text) {
  const parts = text.split(/\{(\w+)\}/); // texts and names of values in turn
  const sources = parts.map((part, index) => (index % 2 ? `(?<${part}>${NUMBERS.has(part) ? NUMBER : VALUE})` : escapeText(part)));
  const end = text.endsWith("}") ? "$" : SPACE_OR_END; // a value at the end may have several words
  return new RegExp(sources.join("") + end, "yu");
}

function escapeText(text) {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
