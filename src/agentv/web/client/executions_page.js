// The list of executions, with a trend line for each eval.
import { fill, h, pageLink, problemBox } from "./dom.js";
import { cost, count, duration, executionName, intervalText, percent, plural, time, tokens } from "./format.js";
import { rateBar, trend } from "./charts.js";
import { verdictChip } from "./diff.js";
import { VirtualList } from "./list.js";

const MAX_TRENDS = 12;
const TREND_POINTS = 30;

/**
 * @param {any} app
 */
export async function executionsPage(app) {
  const trends = h("section", { class: "trends", "aria-label": "Pass rates by eval" });
  const bar = h("div", { class: "toolbar" });
  /** @type {Set<string>} */
  const chosen = new Set();
  /** @type {string | null} */
  let next = null;
  const list = new VirtualList({
    label: "Executions",
    render: (row) => executionRow(row, chosen, drawBar, app.source.isReport),
    more: async () => {
      if (next === null) return false;
      const page = await app.source.executions({ limit: 100, cursor: next });
      next = page.next;
      list.add(page.executions);
      return next !== null;
    },
  });
  function drawBar() {
    // By age, as the list has them: ids of the same second are in no order.
    const [b, a] = list.rows.map((row) => row.id).filter((id) => chosen.has(id));
    const link = a ? h("a", { class: "button", href: pageLink(["compare", a, b]) }, "Compare the two") : null;
    fill(bar, app.source.isReport ? null : h("span", { class: "quiet" }, chosen.size ? `${plural(chosen.size, "execution")} chosen` : "Choose two to compare them."), link);
  }
  const head = h("div", { class: "row-head executions-grid", role: "row" }, ["", "execution", "outcome", "pass rate", "runs", "tokens", "cost", "latency"].map((name) => h("span", { role: "columnheader" }, name)));
  const table = h("div", { role: "table", "aria-label": "Executions", class: "grid-table executions-table" }, h("div", { role: "rowgroup" }, head), list.element);
  app.show(h("h1", null, "Executions"), trends, bar, table);
  app.list = list;
  let shown = "";
  const load = async () => {
    const page = await app.source.executions({ limit: 100 });
    const state = JSON.stringify(page);
    if (state === shown) return;
    shown = state;
    // Rows that were loaded by scrolling stay below those of the first page.
    const last = page.executions.length ? page.executions[page.executions.length - 1].id : null;
    const at = page.next === null ? -1 : list.rows.findIndex((row) => row.id === last);
    const others = at < 0 ? [] : list.rows.slice(at + 1);
    if (!others.length) next = page.next;
    list.rows = others;
    list.atEnd = next === null;
    list.add(page.executions, true);
    fill(trends, trendLines(page.executions));
    drawBar();
    if (!page.executions.length) fill(table, h("p", { class: "empty" }, "There are no executions yet: ", h("code", null, "agentv eval"), " makes one."));
  };
  await load();
  app.refresh = () => load().catch((error) => fill(trends, problemBox(error)));
  app.onLeave(() => list.close());
}

/** @param {any[]} executions */
function trendLines(executions) {
  /** @type {Map<string, {rate: number | null, label: string}[]>} */
  const points = new Map();
  for (const execution of executions.slice(0, TREND_POINTS).reverse()) {
    for (const [name, counts] of Object.entries(execution.evals || {})) {
      const measured = counts.passed + counts.failed;
      const rate = measured ? counts.passed / measured : null;
      const label = `${time(execution.started_at)}: ${percent(rate)} of ${plural(measured, "run")}`;
      points.set(name, [...(points.get(name) || []), { rate, label }]);
    }
  }
  const shown = [...points].filter(([, some]) => some.length > 1).slice(0, MAX_TRENDS);
  return shown.map(([name, some]) => trend(name, some));
}

/**
 * @param {any} row
 * @param {Set<string>} chosen
 * @param {() => void} onChoose
 * @param {boolean} isReport
 */
function executionRow(row, chosen, onChoose, isReport) {
  const cell = (/** @type {string} */ name, /** @type {any} */ ...content) => h("span", { role: "cell", class: name }, content);
  const what = executionName(row.command);
  const box = h("input", { type: "checkbox", "aria-label": `Choose ${row.id}`, onchange: (/** @type {any} */ event) => { event.target.checked ? chosen.add(row.id) : chosen.delete(row.id); onChoose(); } });
  if (box instanceof HTMLInputElement) box.checked = chosen.has(row.id);
  const rate = row.pass_rate === null ? h("span", { class: "quiet" }, "nothing measured") : [rateBar(row), h("span", { class: "number" }, percent(row.pass_rate), " ", h("span", { class: "quiet" }, intervalText(row.pass_rate_interval)))];
  const done = row.runs === row.planned ? count(row.runs) : `${count(row.runs)} of ${count(row.planned)}`;
  return h(
    "div",
    { role: "row", class: "executions-grid" },
    cell("pick", isReport ? null : box),
    cell("main", h("a", { href: pageLink(["executions", row.id]) }, time(row.started_at)), h("span", { class: "quiet sub" }, what || row.id)),
    cell("status", verdictChip(row.status), row.partly_understood ? h("span", { class: "warn", title: "replies only partly understood" }, ` ⚠ ${count(row.partly_understood)}`) : null),
    cell("rate-cell", rate),
    cell("number wide", done),
    cell("number wide", count(tokens(row.tokens_usage))),
    cell("number wide", cost(row.cost_usd)),
    cell("number wide", duration(row.latency_ms?.p50)),
  );
}
