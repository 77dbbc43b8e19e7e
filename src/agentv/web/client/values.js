// Values of agents as text: folded, cut, and never parsed.
import { h } from "./dom.js";
import { count } from "./format.js";

const SHORT = 90;

/** @param {any} value */
function isCut(value) {
  return value !== null && typeof value === "object" && typeof value.$cut === "string" && typeof value.characters === "number";
}

/**
 * Return a value on one line.
 * @param {any} value
 * @param {number} [limit]
 */
export function inlineValue(value, limit = SHORT) {
  if (isCut(value)) return `${value.$cut.slice(0, limit)}…`;
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}

/**
 * Return the arguments of a call as in code.
 * @param {any} input
 */
export function callArguments(input) {
  if (input === undefined) return "";
  if (input === null || typeof input !== "object" || Array.isArray(input) || isCut(input)) return `(${inlineValue(input, 160)})`;
  const parts = Object.entries(input).map(([name, value]) => `${name}=${isCut(value) ? inlineValue(value, 40) : inlineValue(JSON.stringify(value), 60)}`);
  const text = parts.join(", ");
  return `(${text.length > 160 ? `${text.slice(0, 160)}…` : text})`;
}

/**
 * Return a value as a block of text; what was cut says so, and offers the file.
 * @param {any} value
 * @param {string | null} link
 */
export function valueBlock(value, link) {
  if (isCut(value)) return cutBlock(value, link);
  if (typeof value === "string") return h("pre", { class: "value", tabindex: "0" }, value);
  /** @type {any[]} */
  const cuts = [];
  const text = JSON.stringify(value, (_name, item) => {
    if (!isCut(item)) return item;
    cuts.push(item);
    return item.form === "base64" ? `[base64, ${count(item.characters)} characters]` : `${item.$cut}… [${count(item.characters)} characters]`;
  }, 2);
  return h("div", null, h("pre", { class: "value", tabindex: "0" }, text ?? ""), cuts.length ? cutNote("Long texts in it are cut.", link) : null);
}

/**
 * @param {any} cut
 * @param {string | null} link
 */
function cutBlock(cut, link) {
  if (cut.form === "base64") return h("div", { class: "value" }, cutNote(`base64 data, ${count(cut.characters)} characters.`, link));
  return h("div", null, h("pre", { class: "value", tabindex: "0" }, `${cut.$cut}…`), cutNote(`Cut: ${count(cut.$cut.length)} of ${count(cut.characters)} characters are shown.`, link));
}

/**
 * @param {string} text
 * @param {string | null} link
 */
function cutNote(text, link) {
  const where = link ? h("a", { href: link, download: "" }, "Download the whole record") : "The run store has the whole text.";
  return h("p", { class: "cut" }, `${text} `, where);
}

/**
 * Return a part that opens on demand; its content is made then.
 * @param {any} summary
 * @param {() => any} content
 * @param {boolean} [isOpen]
 */
export function fold(summary, content, isOpen = false) {
  const element = h("details", { class: "fold", open: isOpen }, h("summary", null, summary));
  let isFilled = false;
  const fillOnce = () => {
    if (!isFilled) element.append(content());
    isFilled = true;
  };
  if (isOpen) fillOnce();
  element.addEventListener("toggle", fillOnce);
  return element;
}

const CITED = /\b(calls?|messages?) (\d+(?:(?:, | to | and )\d+)*)/g;

/**
 * Return a sentence in which cited calls and messages are links.
 * @param {string} sentence
 * @param {(kind: string, number: number) => string} link
 */
export function citedText(sentence, link) {
  /** @type {any[]} */
  const parts = [];
  let end = 0;
  for (const match of sentence.matchAll(CITED)) {
    parts.push(sentence.slice(end, match.index), `${match[1]} `);
    const kind = match[1].startsWith("call") ? "call" : "message";
    for (const piece of match[2].split(/(\d+)/)) {
      parts.push(/^\d+$/.test(piece) ? h("a", { href: link(kind, Number(piece)), class: "cite" }, piece) : piece);
    }
    end = (match.index ?? 0) + match[0].length;
  }
  parts.push(sentence.slice(end));
  return h("span", null, parts);
}
