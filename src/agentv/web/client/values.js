// Values of agents as text: folded, cut, and never parsed.
import { h } from "./dom.js";
import { count } from "./format.js";

const SHORT = 90;

/**
 * Return the data of a JSON text; numbers that JavaScript would round are kept as they are written.
 * @param {string} text
 * @returns {any}
 */
export function parseJson(text) {
  const { rawJSON } = /** @type {any} */ (JSON);
  if (!rawJSON || !/\d{16}/.test(text)) return JSON.parse(text);
  const parse = /** @type {any} */ (JSON.parse);
  const isRounded = (/** @type {any} */ value) => Number.isInteger(value) && !Number.isSafeInteger(value);
  return parse(text, (/** @type {string} */ _name, /** @type {any} */ value, /** @type {any} */ context) => (isRounded(value) ? rawJSON(context.source) : value));
}

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
  return h("div", null, h("pre", { class: "value", tabindex: "0" }, `${cut.$cut}…`), cutNote(cut.form === "bytes" ? `Cut: ${count(cut.$cut.length)} characters of ${count(cut.characters)} bytes are shown.` : `Cut: ${count(cut.$cut.length)} of ${count(cut.characters)} characters are shown.`, link));
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

const CITED = /\b(calls?|messages?|[Ss]tep) (\d+(?:(?:, | to | and )\d+)*)/g;

/**
 * Return a sentence in which cited calls and messages are links.
 * @param {string} sentence
 * @param {(kind: string, number: number) => string | null} link
 */
export function citedText(sentence, link) {
  /** @type {any[]} */
  const parts = [];
  let end = 0;
  for (const match of sentence.matchAll(CITED)) {
    parts.push(sentence.slice(end, match.index), `${match[1]} `);
    const kind = match[1].toLowerCase().replace(/s$/, "");
    for (const piece of match[2].split(/(\d+)/)) {
      const href = /^\d+$/.test(piece) ? link(kind, Number(piece)) : null;
      parts.push(href ? h("a", { href, class: "cite" }, piece) : piece);
    }
    end = (match.index ?? 0) + match[0].length;
  }
  parts.push(sentence.slice(end));
  return h("span", null, parts);
}

/**
 * Return the links of the sentences of an evaluator, which count the calls and messages of the agent, or of one turn.
 * @param {any} run
 * @param {any} evaluator
 * @param {(kind: string, number: number) => string} link takes positions in the conversation
 * @returns {(sentence: string) => (kind: string, number: number) => string | null}
 */
export function linksOf(run, evaluator, link) {
  const places = run.turn_places || [];
  return (sentence) => {
    const named = /^turn (\d+): /.exec(sentence);
    const turn = evaluator.turn || (named ? Number(named[1]) : 0);
    const own = places[turn - 1];
    return (kind, number) => {
      if (kind === "step") {
        const [place] = Object.entries((evaluator.steps || [])[number - 1] || {});
        return place ? link(place[0], Number(place[1])) : null;
      }
      if (turn && !own) return null;
      if (kind === "call") return link(kind, number + (own ? own.call : 0));
      const at = own ? own.message + number : messageAt(places, number, run.output_from);
      return at === null ? null : link(kind, at);
    };
  };
}

/**
 * Return the position of a message of the agent in the conversation.
 * @param {any[]} places of turns; none if it is one reply
 * @param {number} number
 * @param {number} first
 */
function messageAt(places, number, first) {
  if (!places.length) return first + number;
  let left = number;
  for (const turn of places) {
    if (left < turn.messages) return turn.message + left;
    left -= turn.messages;
  }
  return null;
}
