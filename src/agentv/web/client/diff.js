// The verdict of one evaluator: aligned trajectory, misses and hits.
import { fill, h } from "./dom.js";
import { plural, score } from "./format.js";
import { citedText, fold, inlineValue, linksOf, valueBlock } from "./values.js";

/** @type {Record<string, [string, string]>} */
const DIFF_MARKS = {
  match: ["✓", "as expected"],
  mismatch: ["≠", "other arguments"],
  out_of_order: ["↕", "out of order"],
  missing: ["✗", "missing"],
  extra: ["+", "not expected"],
  allowed: ["·", "allowed"],
};
const MAX_ROWS = 200;

/**
 * @param {string} status
 */
export function verdictChip(status) {
  /** @type {Record<string, string>} */
  const words = { pass: "passed", fail: "failed", error: "error", skipped: "skipped", unfinished: "unfinished", running: "running", interrupted: "interrupted", imported: "imported", damaged: "damaged" };
  return h("span", { class: `chip chip-${words[status] ? status : "other"}` }, words[status] || status);
}

/**
 * Return one evaluator with everything it said.
 * @param {any} run
 * @param {any} evaluator
 * @param {(kind: string, number: number) => string} link
 * @param {string | null} record
 */
export function evaluatorCard(run, evaluator, link, record) {
  const links = linksOf(run, evaluator, link);
  const isBad = evaluator.status === "fail" || evaluator.status === "error";
  const type = evaluator.name === evaluator.type ? null : h("span", { class: "quiet mono" }, evaluator.type);
  const summary = h("span", { class: "evaluator-head" }, verdictChip(evaluator.status), h("strong", null, evaluator.name), type, evaluator.kind === "metric" ? h("span", { class: "quiet" }, "metric") : null, h("span", { class: "number" }, score(evaluator.score)));
  const hasDiff = Boolean(evaluator.diff?.rows.length);
  const content = () =>
    h(
      "div",
      { class: "evaluator-body" },
      hasDiff ? alignedDiff(evaluator, links("")) : null,
      sentences(evaluator.misses, "miss", "✗", links),
      sentences(evaluator.undecided, "undecided", "?", links),
      evaluator.error ? h("p", { class: "miss" }, "! ", inlineValue(evaluator.error, 2000)) : null,
      sentences(evaluator.hits, "hit", "✓", links),
      evaluator.left_out ? h("p", { class: "cut" }, `${plural(evaluator.left_out, "sentence")} more in the record.`) : null,
      hasDetails(evaluator.details) ? fold("Details", () => valueBlock(evaluator.details, record)) : null,
    );
  const element = fold(summary, content, isBad || hasDiff);
  element.classList.add("evaluator", `evaluator-${evaluator.status}`);
  return element;
}

/** @param {any} details */
function hasDetails(details) {
  return details && Object.values(details).some((value) => value !== null && JSON.stringify(value) !== "[]");
}

/**
 * @param {string[]} items
 * @param {string} kind
 * @param {string} mark
 * @param {(sentence: string) => (kind: string, number: number) => string | null} links
 */
function sentences(items, kind, mark, links) {
  if (!items || !items.length) return null;
  return h("ul", { class: "sentences" }, items.map((item) => h("li", { class: kind }, h("span", { "aria-hidden": "true" }, `${mark} `), citedText(item, links(item)))));
}

/**
 * Return expected and actual side by side.
 * @param {any} evaluator
 * @param {(kind: string, number: number) => string | null} link
 */
function alignedDiff(evaluator, link) {
  const { diff } = evaluator;
  const body = h("tbody");
  const note = h("p", { class: "cut", hidden: true });
  let start = 0;
  const draw = () => {
    fill(body, diff.rows.slice(start, start + MAX_ROWS).flatMap((/** @type {any} */ row) => diffRow(row, diff.unit, link)));
    const end = Math.min(diff.rows.length, start + MAX_ROWS);
    note.hidden = diff.total <= MAX_ROWS;
    const move = (/** @type {string} */ text, /** @type {number} */ to, /** @type {boolean} */ isOff) => h("button", { type: "button", disabled: isOff, onclick: () => { start = to; draw(); } }, text);
    fill(note, `Rows ${start + 1} to ${end} of ${diff.total}. `, move("Earlier", Math.max(0, start - MAX_ROWS), start === 0), " ", move("Later", start + MAX_ROWS, end >= diff.rows.length), end >= diff.rows.length && diff.total > diff.rows.length ? " The record has the rest." : "");
  };
  draw();
  const head = h("tr", null, h("th", { scope: "col", class: "mark" }, h("span", { class: "hidden" }, "verdict")), h("th", { scope: "col" }, "expected"), h("th", { scope: "col" }, `actual (number of the ${diff.unit}${evaluator.turn ? ` in turn ${evaluator.turn}` : ""} first)`));
  return h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Aligned trajectory" }, h("table", { class: "diff" }, h("thead", null, head), body), note);
}

/**
 * @param {any} row
 * @param {string} unit
 * @param {(kind: string, number: number) => string | null} link
 */
function diffRow(row, unit, link) {
  const [mark, words] = DIFF_MARKS[row.verdict] || ["?", row.verdict];
  const cell = (/** @type {string} */ text) => h("td", { class: "mono" }, text || h("span", { class: "nothing" }, "nothing"));
  const href = row.number >= 0 && unit === "call" ? link("call", row.number) : null;
  const actual = href ? h("td", { class: "mono" }, h("a", { href, class: "cite" }, row.actual)) : cell(row.actual);
  const first = h("tr", { class: `diff-${row.verdict}` }, h("td", { class: "mark" }, h("span", { "aria-hidden": "true" }, mark), h("span", { class: "hidden" }, words)), row.verdict === "extra" || row.verdict === "allowed" ? h("td", { class: "mono" }) : cell(row.expected), actual);
  const differences = (Array.isArray(row.differences) ? row.differences : []).map((/** @type {any} */ each) => {
    const side = (/** @type {string} */ name) => h("td", { class: "mono difference" }, `${each.path}: ${name in each ? inlineValue(JSON.stringify(each[name]), 300) : "nothing"}`);
    return h("tr", { class: `diff-${row.verdict}` }, h("td"), side("expected"), side("actual"));
  });
  return [first, ...differences];
}
