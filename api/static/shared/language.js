// The language of the page: texts, dates and numbers.
//
// Texts in the scripts are English. A file of `static/languages` translates them, see docs/extending.md.

const CHOICE = "segdec.language";
const ENGLISH = "en";
const ATTRIBUTES = ["title", "placeholder", "aria-label", "alt", "data-text"]; // data-text: shown by a style sheet
const WORD = /\p{L}{2}/u; // one character is a key of the keyboard or a sign

const select = document.getElementById("language"); // offers the languages of the service

/** The user's choice, else the first language of the browser that the service has, else English. */
export const LANGUAGE = chooseLanguage();
/** The header of requests whose answers are in this language. */
export const LANGUAGE_HEADER = { "Accept-Language": LANGUAGE };
/** The locale of dates and numbers. */
export const LOCALE = LANGUAGE === ENGLISH ? "en-GB" : LANGUAGE;

const plurals = new Intl.PluralRules(LOCALE);
const texts = LANGUAGE === ENGLISH ? {} : await fetchTexts();

/** `text` in the language of the page; `{name}` is replaced by a value. */
export function translate(text, values = {}) {
  return replaceNames(texts[text] ?? text, values);
}

/** `one` or `other`, two texts about a count, in the language of the page; `{count}` is replaced by it. */
export function translateCount(count, one, other, values = {}) {
  const forms = texts[other] ?? { one, other };
  return replaceNames(forms[plurals.select(count)] ?? forms.other, { count: formatNumber(count), ...values });
}

/** A number as the language writes it, as 12,345 or 12.345; `options` are those of Intl.NumberFormat. */
export function formatNumber(number, options = {}) {
  return new Intl.NumberFormat(LOCALE, options).format(number);
}

/** A number with a fixed number of decimals. */
export function formatDecimals(number, places) {
  return formatNumber(number, { minimumFractionDigits: places, maximumFractionDigits: places, useGrouping: false });
}

/** Translates the texts and attributes below `root`, except where `translate="no"`. */
export function translateTree(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) translateText(node);
    else for (const name of ATTRIBUTES) if (node.hasAttribute(name)) node.setAttribute(name, translated(node.getAttribute(name)));
  }
}

function translateText(node) {
  if (!node.parentElement.translate || !WORD.test(node.data)) return;
  const text = node.data.trim();
  node.data = node.data.replace(text, () => translated(text)); // keeps the spaces around it
}

function translated(text) {
  return WORD.test(text) ? translate(text) : text;
}

function chooseLanguage() {
  const offered = [...(select?.options ?? [])].map(({ value }) => value);
  const wanted = [localStorage.getItem(CHOICE), ...navigator.languages.map((tag) => tag.split("-")[0])];
  return wanted.find((language) => offered.includes(language)) ?? ENGLISH;
}

/** The texts of the language; none if the file cannot be loaded, so that the page works in English. */
async function fetchTexts() {
  const address = new URL(`../languages/${LANGUAGE}.json`, import.meta.url);
  const answer = await fetch(address).catch(() => null);
  return (answer?.ok && (await answer.json().catch(() => null))?.texts) || {};
}

function replaceNames(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function connectSelect() {
  if (!select) return;
  select.value = LANGUAGE;
  select.addEventListener("change", () => {
    localStorage.setItem(CHOICE, select.value);
    location.reload();
  });
}

document.documentElement.lang = LANGUAGE;
if (LANGUAGE !== ENGLISH) translateTree(document.documentElement);
connectSelect();
document.documentElement.dataset.translated = ""; // base.css shows the page
