// One execution: numbers, failure groups, charts, and the table of cases and runs.
import { announce, fill, h, pageLink, problemBox } from "./dom.js";
import { callCount, cost, count, duration, executionName, intervalText, percent, plural, score, time, tokens } from "./format.js";
import { histogram, rateBar } from "./charts.js";
import { listStatus } from "./file_source.js";
import { verdictChip } from "./diff.js";
import { VirtualList } from "./list.js";

const FILTER_NAMES = ["status", "target", "persona", "tool", "tag", "evaluator", "failure", "label", "flaky", "text", "transcripts", "eval_id", "case_id"];
const SORTS = [["position", "plan order"], ["case", "case"], ["status", "outcome"], ["score", "score"], ["latency", "latency"], ["tokens", "tokens"], ["cost", "cost"], ["target", "target"]];
const TYPING_MS = 200;
const PAGE = 200;
const MAX_PAGE = 500;
/** Rows that are loaded again when the store changes. */
const MAX_UPDATED = 2000;

/**
 * @param {any} app
 * @param {string} id
 * @param {URLSearchParams} query
 */
export async function executionPage(app, id, query) {
  const execution = await app.source.execution(id);
  const page = new ExecutionPage(app, execution, query);
  await page.open();
}

class ExecutionPage {
  /**
   * @param {any} app
   * @param {any} execution
   * @param {URLSearchParams} query
   */
  constructor(app, execution, query) {
    this.app = app;
    this.source = app.source;
    this.execution = execution;
    this.id = execution.id;
    /** @type {Record<string, string>} */
    this.where = {};
    for (const name of FILTER_NAMES) {
      const value = query.get(name);
      if (value !== null) this.where[name] = value;
    }
    this.view = query.get("view") || "";
    this.sort = query.get("sort") || "position";
    this.order = query.get("order") || "asc";
    /** @type {string | null} */
    this.next = null;
    this.number = 0;
    this.head = h("div");
    this.failures = h("section", { class: "panel", "aria-label": "Failures" });
    this.charts = h("section", { class: "charts", "aria-label": "Charts" });
    this.filters = h("form", { class: "filters", role: "search", "aria-label": "Filter runs", onsubmit: (/** @type {Event} */ event) => event.preventDefault() });
    this.total = h("span", { class: "quiet", "aria-live": "polite" });
    this.table = h("div");
    /** @type {VirtualList | null} */
    this.list = null;
    this.token = "";
  }

  /** A search in transcripts finds runs one after the other: nothing can be counted of them. */
  get isDeep() {
    return Boolean(this.where.transcripts && this.where.text);
  }

  /** Conditions without that of a search in transcripts. */
  get indexed() {
    return { ...this.where, transcripts: "" };
  }

  async open() {
    this.app.show(this.head, this.failures, this.charts, this.filters, h("div", { class: "toolbar" }, this.total), this.table);
    this.drawHead();
    this.app.keys.f = () => this.set({ status: this.where.status === "fail,error" ? "" : "fail,error" });
    const [facets, evaluators] = await Promise.all([this.source.facets(this.id), this.source.evaluators(this.id)]);
    this.facets = facets;
    this.evaluators = evaluators.evaluators;
    if (!this.view) this.view = facets.targets.length > 1 || facets.personas.length > 1 ? "cases" : "runs";
    if (this.isDeep) this.view = "runs";
    this.drawFilters();
    await this.load();
    this.app.refresh = () => this.update();
    this.app.onLeave(() => this.list?.close());
  }

  /** Show what changed in the store. */
  async update() {
    try {
      [this.execution, this.facets] = await Promise.all([this.source.execution(this.id), this.source.facets(this.id)]);
      this.evaluators = (await this.source.evaluators(this.id)).evaluators;
      this.drawHead();
      if (!this.filters.contains(document.activeElement)) this.drawFilters();
      await this.load(true);
    } catch (error) {
      fill(this.head, problemBox(error));
    }
  }

  drawHead() {
    const row = this.execution;
    const what = executionName(row.command);
    const flaky = row.summary?.repeats?.flaky;
    const tile = (/** @type {string} */ name, /** @type {any} */ value, /** @type {any} */ note = null) => h("div", { class: "tile" }, h("span", { class: "quiet" }, name), h("span", { class: "tile-value" }, value), note ? h("span", { class: "quiet small" }, note) : null);
    const progress = row.status === "running" ? h("progress", { max: row.planned || 1, value: row.runs, "aria-label": "Progress" }) : null;
    fill(
      this.head,
      h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "#/" }, "Executions"), " / ", h("span", { class: "mono" }, this.id)),
      h("h1", null, what || "Execution", " ", verdictChip(row.status)),
      row.problem ? h("div", { class: "problem", role: "alert" }, row.problem) : null,
      progress,
      h("div", { class: "tiles" },
        tile("passed", [percent(row.pass_rate), " ", rateBar(row)], row.pass_rate_interval ? `${row.errors ? `of ${count(row.passed + row.failed)} measured, ` : ""}95 % interval ${intervalText(row.pass_rate_interval)}` : "nothing measured"),
        tile("runs", row.runs === row.planned ? count(row.runs) : `${count(row.runs)} of ${count(row.planned)}`, `${count(row.failed)} failed, ${plural(row.errors, "error")}`),
        tile("latency", duration(row.latency_ms?.p50), row.latency_ms ? `p95 ${duration(row.latency_ms.p95)}` : "median"),
        tile("tokens", count(tokens(row.tokens_usage)), coverage(row, "tokens_usage")),
        tile("cost", cost(row.cost_usd), coverage(row, "cost_usd")),
        row.summary?.repeats ? tile("flaky cases", count(flaky), `of ${plural(row.summary.repeats.cases, "repeated case")}`) : null),
      h("p", { class: "quiet" }, `started ${time(row.started_at)}${row.completed_at ? `, ended ${time(row.completed_at)}` : ""}`),
      row.partly_understood ? h("div", { class: "notice" }, h("strong", null, `${row.partly_understood === 1 ? "1 reply was" : `${count(row.partly_understood)} replies were`} only partly understood: `), "calls may be missing. The page of each run names the parts.") : null,
    );
  }

  drawFilters() {
    const { facets } = this;
    const choose = (/** @type {string} */ name, /** @type {string} */ label, /** @type {any[]} */ options) => {
      if (options.length < 2 && this.where[name] === undefined) return null;
      const select = h("select", { "aria-label": label, onchange: (/** @type {any} */ event) => this.set({ [name]: event.target.value ? event.target.value.slice(1) : null }) }, h("option", { value: "" }, label), options.map(([value, text]) => h("option", { value: `=${value}`, selected: this.where[name] === value }, text)));
      return select;
    };
    const listed = (/** @type {any[]} */ some) => some.map((each) => [each.value, `${each.value || "no persona"} (${count(each.runs)})`]);
    /** @type {any} */
    let timer = 0;
    const type = (/** @type {any} */ event) => {
      clearTimeout(timer);
      timer = setTimeout(() => this.set({ text: event.target.value }), TYPING_MS);
    };
    const search = h("input", { type: "search", id: "search", placeholder: "Search id, input, answer, misses", "aria-label": "Search", value: this.where.text || "", oninput: type });
    const box = (/** @type {string} */ name, /** @type {string} */ label) => h("label", { class: "box" }, h("input", { type: "checkbox", checked: this.where[name] === "true", onchange: (/** @type {any} */ event) => this.set({ [name]: event.target.checked ? "true" : "" }) }), label);
    const statuses = ["pass", "fail", "error", "unfinished"].filter((status) => status !== "unfinished" || facets.statuses.some((/** @type {any} */ each) => each.value === status));
    const buttons = statuses.map((status) => {
      const known = facets.statuses.find((/** @type {any} */ each) => each.value === status);
      const chosen = (this.where.status || "").split(",").filter(Boolean);
      const isOn = chosen.includes(status);
      const next = isOn ? chosen.filter((each) => each !== status) : [...chosen, status];
      return h("button", { type: "button", "aria-pressed": String(isOn), class: `toggle toggle-${status}`, onclick: () => this.set({ status: next.join(",") }) }, `${status} ${count(known ? known.runs : 0)}`);
    });
    const tab = (/** @type {string} */ view, /** @type {string} */ name) => h("button", { type: "button", "aria-pressed": String(this.view === view), class: "toggle", disabled: this.isDeep && view === "cases", title: this.isDeep && view === "cases" ? "a search in transcripts lists runs" : null, onclick: () => { this.view = view; this.set({}); } }, name);
    const sort = h("select", { "aria-label": "Sort by", onchange: (/** @type {any} */ event) => { this.sort = event.target.value; this.order = ["score", "case", "position", "target", "status"].includes(this.sort) ? "asc" : "desc"; this.set({}); } }, SORTS.map(([value, text]) => h("option", { value, selected: this.sort === value }, `by ${text}`)));
    const direction = h("button", { type: "button", "aria-label": this.order === "asc" ? "Ascending" : "Descending", onclick: () => { this.order = this.order === "asc" ? "desc" : "asc"; this.set({}); } }, this.order === "asc" ? "↑" : "↓");
    fill(
      this.filters,
      h("div", { class: "filter-line" }, search, this.source.isReport ? null : box("transcripts", "in transcripts"), h("span", { class: "group" }, buttons)),
      h("div", { class: "filter-line" },
        choose("target", "all targets", listed(facets.targets)),
        choose("persona", "all personas", listed(facets.personas)),
        choose("tag", "all tags", listed(facets.tags)),
        choose("tool", "all tools", listed(facets.tools)),
        choose("evaluator", "all evaluators", (this.evaluators || []).map((/** @type {any} */ each) => [each.name, `not passed: ${each.name} (${count(each.failed + each.errors)})`])),
        choose("label", "all labels", [["pass", "labelled pass"], ["fail", "labelled fail"]]),
        box("flaky", "flaky only"),
        h("span", { class: "group" }, tab("cases", "Cases"), tab("runs", "Runs")),
        this.view === "runs" ? h("span", { class: "group" }, sort, direction) : null,
        FILTER_NAMES.some((name) => this.where[name] !== undefined) ? h("button", { type: "button", onclick: () => { this.where = {}; this.set({}); } }, "Clear") : null),
      this.where.failure ? h("p", { class: "quiet" }, "Only runs with: ", h("strong", null, this.where.failure)) : null,
      this.where.case_id ? h("p", { class: "quiet" }, "Only runs of case ", h("strong", null, this.where.case_id)) : null,
    );
  }

  /**
   * Change conditions, and remember them in the address.
   * @param {Record<string, string | null>} changes
   */
  set(changes) {
    const active = document.activeElement;
    const typed = active instanceof HTMLInputElement && active.id === "search" ? active.selectionStart : null;
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || (value === "" && name !== "persona")) delete this.where[name];
      else this.where[name] = value;
    }
    if (this.isDeep) this.view = "runs";
    const state = { ...this.where, view: this.view, sort: this.sort === "position" ? "" : this.sort, order: this.order === "asc" ? "" : this.order };
    history.replaceState(null, "", pageLink(["executions", this.id], state));
    this.drawFilters();
    if (typed !== null) {
      const search = document.getElementById("search");
      if (search instanceof HTMLInputElement) {
        search.focus();
        search.setSelectionRange(typed, typed);
      }
    }
    this.load();
  }

  /**
   * Return the first page, with all rows that are shown already.
   * @param {number} shown
   */
  async firstRows(shown) {
    const isCases = this.view === "cases";
    const ask = (/** @type {any} */ query) => (isCases ? this.source.cases(this.id, { ...this.indexed, ...query }) : this.source.runs(this.id, { ...this.where, sort: this.sort, order: this.order, ...query }));
    const limit = Math.min(MAX_PAGE, Math.max(PAGE, shown));
    const page = await ask({ limit });
    for (let rows = limit; rows < shown && page.next !== null; rows += limit) {
      const more = await ask({ limit, cursor: page.next });
      page.next = more.next;
      if (isCases) page.cells.push(...more.cells);
      else page.runs.push(...more.runs);
    }
    return page;
  }

  /** @param {boolean} [isUpdate] the reader stays at the same row */
  async load(isUpdate = false) {
    this.number += 1;
    const number = this.number;
    const isCurrent = () => number === this.number;
    try {
      const shown = isUpdate && this.list ? this.list.rows.length : 0;
      // Very many rows that were loaded by scrolling stay as they are.
      const isKept = shown > MAX_UPDATED;
      const first = isKept ? null : this.firstRows(shown);
      // What stands above the table comes with it, so that no row moves away from under the pointer.
      const above = this.isDeep ? [{ failures: [] }, { charts: [] }] : [this.source.failures(this.id, this.indexed), this.source.charts(this.id, this.indexed)];
      const [page, failures, charts] = await Promise.all([first, ...above.map((each) => Promise.resolve(each).catch((error) => ({ error })))]);
      if (!isCurrent()) return;
      if (failures.error) fill(this.failures, problemBox(failures.error));
      else this.drawFailures(failures.failures);
      fill(this.charts, charts.error ? problemBox(charts.error) : charts.charts.map(histogram));
      if (isKept) return;
      const place = { top: scrollY, active: this.list?.active ?? -1, isFocused: this.table.contains(document.activeElement) };
      if (this.view === "cases") this.drawCases(page);
      else this.drawRuns(page);
      if (!isUpdate || !this.list) return;
      scrollTo(0, place.top);
      this.list.draw();
      if (place.isFocused && place.active >= 0) this.list.focus(place.active, false);
      else this.list.active = place.active;
    } catch (error) {
      if (isCurrent()) fill(this.table, problemBox(error));
    }
  }

  /** @param {any[]} failures */
  drawFailures(failures) {
    if (!failures.length || this.where.failure) return fill(this.failures);
    const shown = failures.slice(0, 8);
    fill(this.failures, h("h2", null, "Failures"), h("ul", { class: "groups" }, shown.map((group) => h("li", null, h("button", { type: "button", class: "group-button", onclick: () => { this.view = "runs"; this.set({ failure: group.failure }); } }, h("span", { class: `group-count bar-text-${group.status}` }, `${count(group.runs)} ×`), h("span", null, group.failure), group.status === "error" ? verdictChip("error") : null)))), failures.length > shown.length ? h("p", { class: "quiet" }, `and ${plural(failures.length - shown.length, "more kind")} of failures`) : null);
    return undefined;
  }

  /** @param {any} page */
  drawRuns(page) {
    this.list?.close();
    let next = page.next;
    let shown = page.runs.length;
    const say = () => {
      const known = page.total === null ? plural(shown, "run") : `${plural(page.total, "run")}${page.total > shown ? `, ${count(shown)} loaded` : ""}`;
      this.total.textContent = next && page.is_partial ? `${known} found so far; searching …` : known;
    };
    const hasPersonas = (this.facets?.personas || []).length > 1;
    const list = new VirtualList({
      label: "Runs",
      render: (run) => runRow(run, hasPersonas),
      more: async () => {
        if (next === null) return false;
        const more = await this.source.runs(this.id, { ...this.where, sort: this.sort, order: this.order, limit: PAGE, cursor: next });
        next = more.next;
        shown += more.runs.length;
        list.add(more.runs);
        say();
        return next !== null;
      },
    });
    const names = ["outcome", "case", "target", "why", "score", "calls", "latency", "tokens", "cost"];
    const head = h("div", { class: "row-head runs-grid", role: "row" }, names.map((name) => h("span", { role: "columnheader" }, name)));
    fill(this.table, page.runs.length || next ? h("div", { role: "table", "aria-label": "Runs", "aria-rowcount": String((page.total ?? -2) + 1), class: "grid-table runs-table" }, h("div", { role: "rowgroup" }, head), list.element) : h("p", { class: "empty" }, "No run meets these conditions."));
    this.list = list;
    this.app.list = list;
    list.atEnd = next === null;
    list.add(page.runs);
    say();
    announce(this.total.textContent || "");
  }

  /** @param {any} page */
  drawCases(page) {
    this.list?.close();
    /** @type {Map<string, any>} */
    const rows = new Map();
    /** @type {Map<string, any>} */
    const known = new Map();
    /** @type {any[]} */
    let columns = [];
    const take = (/** @type {any[]} */ cells) => {
      const added = [];
      for (const cell of cells) {
        known.set(columnKey(cell), { key: columnKey(cell), target: cell.target, persona: cell.persona_id });
        const key = JSON.stringify([cell.eval_id, cell.case_id]);
        let row = rows.get(key);
        if (!row) {
          row = { eval_id: cell.eval_id, case_id: cell.case_id, cells: new Map() };
          rows.set(key, row);
          added.push(row);
        }
        row.cells.set(columnKey(cell), cell);
      }
      // Further cases may be those of other targets.
      if (known.size > columns.length) drawColumns();
      return added;
    };
    const header = h("div", { role: "rowgroup" });
    const drawColumns = () => {
      columns = [...known.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
      table.style.setProperty("--columns", String(columns.length));
      fill(header, h("div", { class: "row-head cases-grid", role: "row" }, h("span", { role: "columnheader" }, "case"), columns.map((column) => h("span", { role: "columnheader", class: "main", title: column.persona ? `${column.target}, persona ${column.persona}` : column.target }, h("span", { class: "cell-line" }, column.target), column.persona ? h("span", { class: "sub" }, column.persona) : null))));
    };
    let next = page.next;
    const list = new VirtualList({
      label: "Cases",
      render: (row) => caseRow(row, columns, this.id),
      more: async () => {
        if (next === null) return false;
        const more = await this.source.cases(this.id, { ...this.indexed, limit: PAGE, cursor: next });
        next = more.next;
        list.add(take(more.cells));
        return next !== null;
      },
    });
    const table = h("div", { role: "table", "aria-label": "Cases", class: "grid-table cases-table" }, header, list.element);
    fill(this.table, page.cells.length ? h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Cases by target" }, table) : h("p", { class: "empty" }, "No case meets these conditions."));
    this.list = list;
    this.app.list = list;
    list.atEnd = next === null;
    list.add(take(page.cells));
    this.total.textContent = plural(page.total ?? rows.size, "case");
    announce(this.total.textContent);
  }
}

/**
 * @param {any} row
 * @param {string} name
 */
function coverage(row, name) {
  const known = row.summary?.reported?.[name];
  if (known === undefined || known === row.runs) return null;
  return known === 0 ? "not reported" : `reported by ${count(known)} of ${count(row.runs)}`;
}

/** @param {any} cell */
function columnKey(cell) {
  return JSON.stringify([cell.target, cell.persona_id]);
}

/**
 * @param {any} row
 * @param {any[]} columns
 * @param {string} id
 */
function caseRow(row, columns, id) {
  const cells = columns.map((column) => {
    const cell = row.cells.get(column.key);
    if (!cell) return h("span", { role: "cell", class: "quiet" }, "–");
    const runs = cell.passed + cell.failed + cell.errors + cell.unfinished;
    const state = cell.unfinished === runs ? "unfinished" : cell.errors ? "error" : cell.failed ? (cell.passed ? "flaky" : "fail") : "pass";
    const words = runs === 1 ? { pass: "passed", fail: "failed", error: "error", unfinished: "unfinished", flaky: "flaky" }[state] : `${cell.passed} of ${runs}${state === "flaky" ? " flaky" : ""}${cell.errors ? `, ${plural(cell.errors, "error")}` : ""}`;
    const where = { eval_id: cell.eval_id, case_id: cell.case_id, target: cell.target, persona: cell.persona_id ?? "" };
    const href = runs === 1 ? pageLink(["runs", `${id}-${cell.key}`]) : pageLink(["repeats", id], where);
    return h("span", { role: "cell" }, h("a", { href, class: `case-cell case-${state}` }, words));
  });
  return h("div", { role: "row", class: "cases-grid" }, h("span", { role: "cell", class: "main mono" }, row.case_id), cells);
}

/**
 * @param {any} run
 * @param {boolean} hasPersonas
 */
function runRow(run, hasPersonas) {
  const cell = (/** @type {string} */ name, /** @type {any} */ ...content) => h("span", { role: "cell", class: name }, content);
  const status = run.damage ? "damaged" : listStatus(run);
  const name = `${run.case_id}${run.repeat ? ` #${run.repeat + 1}` : ""}`;
  const why = run.damage || run.failure || (run.unread ? "only partly understood" : "");
  return h(
    "div",
    { role: "row", class: "runs-grid" },
    cell("status", verdictChip(status)),
    cell("main", h("a", { href: pageLink(["runs", `${run.execution_id}-${run.key}`]), class: "mono" }, name), run.label ? h("span", { class: `label label-${run.label.label}`, title: run.label.note }, ` labelled ${run.label.label}`) : null),
    cell("who main", h("span", { class: "cell-line", title: run.target }, run.target), hasPersonas ? h("span", { class: "quiet sub" }, run.persona_id || "no persona") : null),
    h("span", { role: "cell", class: "why quiet", title: why }, why),
    cell("number wide", score(run.result?.score)),
    cell("number wide", run.result ? callCount(run.calls, Boolean(run.unread)) : "–"),
    cell("number wide", duration(run.latency_ms)),
    cell("number wide", count(tokens(run.tokens_usage))),
    cell("number wide", cost(run.cost_usd)),
  );
}
