// Two executions held against each other, and all repetitions of one case.
import { fill, h, pageLink } from "./dom.js";
import { count, measure, plural, score } from "./format.js";
import { verdictChip } from "./diff.js";
import { fold } from "./values.js";

const MAX_COLUMNS = 30;
const MAX_STEPS = 200;

/** @type {[string, string][]} */
const MEASURE_NAMES = [["pass_rate", "pass rate"], ["score", "score"], ["latency_p50_ms", "latency, median"], ["latency_p95_ms", "latency, p95"], ["input_tokens", "input tokens per run"], ["output_tokens", "output tokens per run"], ["cost_usd", "cost per run"]];

/**
 * @param {any} app
 * @param {string} a
 * @param {string} b
 */
export async function comparePage(app, a, b) {
  app.show(h("h1", null, "Compare"), h("p", { class: "quiet" }, "Comparing …"));
  const comparison = await app.source.compare(a, b);
  const side = (/** @type {string} */ letter, /** @type {string} */ id, /** @type {any} */ data) => h("div", { class: "tile" }, h("span", { class: "quiet" }, letter), h("a", { href: pageLink(["executions", id]), class: "mono" }, id), h("span", { class: "quiet small" }, `${plural(data.runs, "run")}, ${plural(data.errors, "error")}`));
  const lost = comparison.lost.concat(comparison.declined || []);
  app.show(
    h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "#/" }, "Executions"), " / compare"),
    h("h1", null, verdictTitle(comparison.verdict)),
    h("div", { class: "tiles" }, side("A", a, comparison.a), side("B", b, comparison.b), number("cases", comparison.cases), number("won by B", comparison.wins), number("lost by B", comparison.losses), number("both passed", comparison.both_passed), number("both failed", comparison.both_failed)),
    h("p", { class: "quiet" }, comparison.p_value === null ? "" : `p = ${comparison.p_value.toPrecision(2)} over all cases · `, h("a", { href: pageLink(["compare", b, a]) }, "swap A and B")),
    notCompared(comparison),
    measuresTable(comparison),
    h("section", { "aria-label": "Losses" }, h("h2", null, `Lost by B: ${count(comparison.losses)}`), lost.length ? lost.slice(0, 200).map((/** @type {any} */ each) => changeCard(each, a, b)) : h("p", { class: "quiet" }, "No case was lost."), comparison.not_listed ? h("p", { class: "cut" }, `${count(comparison.not_listed)} more are not listed.`) : null),
    h("section", { "aria-label": "Wins" }, h("h2", null, `Won by B: ${count(comparison.won.count)}`), h("ul", null, comparison.won.cases.map((/** @type {any} */ each) => h("li", null, caseLinks(each, a, b)))), comparison.won.count > comparison.won.cases.length ? h("p", { class: "cut" }, `${count(comparison.won.count - comparison.won.cases.length)} more are not listed.`) : null),
  );
}

/**
 * Say what the verdict leaves out: it could hide a regression.
 * @param {any} comparison
 */
function notCompared(comparison) {
  const sentences = [...comparison.missing];
  if (comparison.not_measured.count) sentences.push(`${plural(comparison.not_measured.count, "case")} not measured on both sides${comparison.lost_to_errors ? `; ${count(comparison.lost_to_errors)} of them measured in A, and only errors in B` : ""}: ${names(comparison.not_measured)}`);
  if (comparison.only_b.count) sentences.push(`${plural(comparison.only_b.count, "case")} only in B: ${names(comparison.only_b)}`);
  if (!sentences.length) return null;
  return h("div", { class: "notice" }, h("strong", null, "Not compared: "), h("ul", null, sentences.map((each) => h("li", null, each))));
}

/** @param {any} list */
function names(list) {
  const shown = [...new Set(list.cases.map((/** @type {any} */ each) => each.case_id))];
  return `${shown.slice(0, 10).join(", ")}${shown.length > 10 || list.count > list.cases.length ? ", …" : ""}`;
}

/** @param {string} verdict */
function verdictTitle(verdict) {
  const word = verdict.split(" ")[0];
  if (word !== "better" && word !== "worse") return verdict.charAt(0).toUpperCase() + verdict.slice(1);
  return ["B is ", h("span", { class: `verdict-${word}` }, verdict)];
}

/**
 * @param {string} name
 * @param {number} value
 */
function number(name, value) {
  return h("div", { class: "tile" }, h("span", { class: "quiet" }, name), h("span", { class: "tile-value" }, count(value)));
}

/**
 * Return a difference with its sign, unless it is rounded to zero.
 * @param {string} text without a sign
 * @param {number} value
 */
function signedText(text, value) {
  return `${!/[1-9]/.test(text) ? "" : value > 0 ? "+" : "−"}${text}`;
}

/** @param {any} comparison */
function measuresTable(comparison) {
  const rows = MEASURE_NAMES.map(([name, title]) => {
    const each = comparison.measures[name];
    const show = (/** @type {any} */ value) => measure(name, value);
    const signed = (/** @type {any} */ value) => signedText(measure(name, value === null ? null : Math.abs(value)), value);
    const interval = each.interval ? `${signed(each.interval[0])} to ${signed(each.interval[1])}` : "–";
    return h("tr", null, h("th", { scope: "row" }, title), h("td", { class: "number" }, show(each.a)), h("td", { class: "number" }, show(each.b)), h("td", { class: "number" }, signed(each.difference)), h("td", { class: "number quiet" }, interval));
  });
  const names = ["measure", "A", "B", "B − A", `${Math.round(comparison.confidence * 100)} % interval`];
  return h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Measures" }, h("table", { class: "plain" }, h("thead", null, h("tr", null, names.map((name) => h("th", { scope: "col" }, name)))), h("tbody", null, rows)));
}

/**
 * @param {any} change
 * @param {string} a
 * @param {string} b
 */
function caseLinks(change, a, b) {
  const query = { eval_id: change.eval_id, case_id: change.case_id, target: change.target, view: "runs" };
  return h("span", null, h("span", { class: "mono" }, change.case_id), change.target ? h("span", { class: "quiet" }, ` ${change.target}`) : null, " · ", h("a", { href: pageLink(["executions", a], query) }, "runs of A"), " · ", h("a", { href: pageLink(["executions", b], query) }, "runs of B"));
}

/**
 * @param {any} change
 * @param {string} a
 * @param {string} b
 */
function changeCard(change, a, b) {
  const outcome = (/** @type {any} */ side) => `${side.passed} passed, ${side.failed} failed${side.errors ? `, ${plural(side.errors, "error")}` : ""}, score ${score(side.score)}`;
  const summary = h("span", { class: "evaluator-head" }, change.regressed ? h("span", { class: "chip chip-fail" }, "beyond chance") : change.flaky ? h("span", { class: "chip chip-other" }, "flaky") : verdictChip("fail"), h("strong", { class: "mono" }, change.case_id), change.target ? h("span", { class: "quiet" }, change.target) : null);
  const misses = (change.evaluators || []).flatMap((/** @type {any} */ each) => each.misses.map((/** @type {string} */ miss) => `${each.name}: ${miss}`));
  const content = () =>
    h(
      "div",
      { class: "evaluator-body" },
      h("p", null, h("b", null, "A: "), outcome(change.a), h("br"), h("b", null, "B: "), outcome(change.b)),
      misses.length ? h("ul", { class: "sentences" }, misses.slice(0, 50).map((/** @type {string} */ miss) => h("li", { class: "miss" }, `✗ ${miss}`))) : null,
      change.calls ? callPairs(change.calls) : null,
      h("p", null, caseLinks(change, a, b)),
    );
  const element = fold(summary, content, Boolean(change.calls));
  element.classList.add("evaluator", "evaluator-fail");
  return element;
}

/** @param {any[]} pairs */
function callPairs(pairs) {
  const rows = pairs.slice(0, 200).map((pair) => h("tr", { class: `diff-${pair.verdict}` }, h("td", { class: "mono" }, pair.a || h("span", { class: "nothing" }, "nothing")), h("td", { class: "mono" }, pair.b || h("span", { class: "nothing" }, "nothing"))));
  return h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Calls side by side" }, h("table", { class: "diff" }, h("thead", null, h("tr", null, h("th", { scope: "col" }, "A"), h("th", { scope: "col" }, "B"))), h("tbody", null, rows)));
}

/**
 * @param {any} app
 * @param {string} id
 * @param {URLSearchParams} query
 */
export async function repeatsPage(app, id, query) {
  const where = { case_id: query.get("case_id"), eval_id: query.get("eval_id"), target: query.get("target") };
  const first = await app.source.repeats(id, { ...where, persona: query.get("persona") });
  const others = query.get("persona") === null ? first.personas.filter((/** @type {any} */ each) => each !== first.persona_id) : [];
  const diffs = [first, ...(await Promise.all(others.map((/** @type {string | null} */ persona) => app.source.repeats(id, { ...where, persona: persona ?? "" }))))];
  const hasPersonas = first.personas.length > 1 || first.persona_id !== null;
  app.show(
    h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "#/" }, "Executions"), " / ", h("a", { href: pageLink(["executions", id]), class: "mono" }, id), " / ", h("span", { class: "mono" }, first.case_id)),
    h("h1", null, h("span", { class: "mono" }, first.case_id), diffs.length > 1 ? " by persona" : ` ${passedText(first)}`),
    h("p", { class: "quiet" }, `eval ${first.eval_id}`, where.target ? ` · target ${where.target}` : "", hasPersonas && diffs.length === 1 ? ` · ${personaText(first)} · ` : null, diffs.length === 1 && first.personas.length > 1 ? h("a", { href: pageLink(["repeats", id], where) }, "all personas") : null),
    diffs.map((diff) => h("section", { "aria-label": personaText(diff) }, diffs.length > 1 ? h("h2", null, `${personaText(diff)}: ${passedText(diff)}`) : null, repeatsOf(diff))),
  );
}

/** @param {any} diff */
function personaText(diff) {
  return diff.persona_id === null ? "no persona" : `persona ${diff.persona_id}`;
}

/** @param {any} diff */
function passedText(diff) {
  const passed = diff.runs.filter((/** @type {any} */ run) => run.status === "pass").length;
  return `${count(passed)} of ${plural(diff.runs.length, "run")} passed`;
}

/** @param {any[]} runs */
function noDivergence(runs) {
  if (!runs.length) return "";
  return new Set(runs.map((run) => run.status)).size > 1 ? "The calls do not tell passing from failing runs." : runs.length > 1 ? "All runs have the same outcome." : "";
}

/** @param {any} diff */
function repeatsOf(diff) {
  return [
    diff.first ? h("div", { class: "notice" }, h("strong", null, "Passing and failing runs part here: "), diff.first.sentence, diff.first.significant ? "" : " (this may be chance)") : h("p", { class: "quiet" }, noDivergence(diff.runs)),
    diff.runs.length ? alignedColumns(diff) : null,
    diff.divergences.length > 1 ? fold("All divergences", () => h("ul", null, diff.divergences.map((/** @type {any} */ each) => h("li", null, each.sentence)))) : null,
    diff.left_out.length ? fold(`${plural(diff.left_out.length, "run")} left out`, () => h("ul", null, diff.left_out.slice(0, 200).map((/** @type {any} */ each) => h("li", null, h("a", { href: pageLink(["runs", each.id]), class: "mono" }, each.id), ` ${each.reason}`))), !diff.runs.length) : null,
  ];
}

/** @param {any} diff */
function alignedColumns(diff) {
  const runs = diff.runs.slice(0, MAX_COLUMNS);
  const hasTargets = new Set(diff.runs.map((/** @type {any} */ run) => run.target)).size > 1;
  const heads = runs.map((/** @type {any} */ run) => h("th", { scope: "col" }, h("a", { href: pageLink(["runs", run.id]) }, `run ${run.repeat + 1}`), " ", verdictChip(run.status), hasTargets ? h("div", null, run.target) : null));
  const first = diff.first ? diff.first.column : -1;
  const shown = diff.columns.slice(0, MAX_STEPS);
  const body = shown.map((/** @type {any} */ step, /** @type {number} */ at) => {
    const cells = runs.map((/** @type {any} */ run) => {
      const cell = run.cells[at];
      if (!cell) return h("td", { class: "nothing" }, "–");
      return h("td", { class: `mono variant-${Math.min(cell.variant, 3)}` }, h("a", { href: pageLink(["runs", run.id], { call: cell.call }), class: "cite" }, `${cell.call}: ${step.variants[cell.variant].label}`));
    });
    return h("tr", { class: at === first ? "diverges" : null }, h("th", { scope: "row", class: "number" }, at + 1), cells);
  });
  const table = h("table", { class: "diff columns" }, h("thead", null, h("tr", null, h("th", { scope: "col" }, "step"), heads)), h("tbody", null, body));
  const notes = [diff.runs.length > runs.length ? `The first ${runs.length} of ${plural(diff.runs.length, "run")} are shown.` : "", diff.columns.length > shown.length ? `The first ${shown.length} of ${count(diff.columns.length)} steps are shown.` : ""].filter(Boolean).join(" ");
  return h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Calls of all runs, aligned" }, table, notes ? h("p", { class: "cut" }, notes) : null);
}

/** @param {any} app */
export async function labelsPage(app) {
  const list = h("div");
  app.show(
    h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "#/" }, "Executions"), " / labels"),
    h("h1", null, "Labels"),
    h("p", null, "Mark runs as pass or fail on their pages. Then hold a judge against your labels:"),
    h("pre", { class: "value", tabindex: "0" }, "agentv calibrate --judge NAME"),
    h("p", null, h("a", { class: "button", href: "api/v1/labels", download: "labels.jsonl" }, "Download labels.jsonl")),
    list,
  );
  const { executions } = await app.source.executions({ limit: 50 });
  const found = [];
  for (const execution of executions) {
    for (const label of ["pass", "fail"]) {
      const page = await app.source.runs(execution.id, { label, limit: 200 });
      found.push(...page.runs);
    }
  }
  fill(list, found.length ? h("ul", null, found.map((run) => h("li", null, h("a", { href: pageLink(["runs", `${run.execution_id}-${run.key}`]), class: "mono" }, run.case_id), h("span", { class: `label label-${run.label.label}` }, ` ${run.label.label} `), h("span", { class: "quiet" }, run.label.note)))) : h("p", { class: "quiet" }, "No run of the last 50 executions is labelled."));
}
