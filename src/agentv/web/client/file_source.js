// The data in a report as the source of all pages: the same answers as those of the API.
import { histograms } from "./histograms.js";
import { parseJson } from "./values.js";

/** @typedef {Record<string, any>} Query */

/**
 * Return the JSON in a compressed block of the page.
 * @param {string} id
 */
async function readBlock(id) {
  const text = document.getElementById(id)?.textContent;
  if (!text) throw new Error("A part of this report is missing: it was cut, or changed.");
  const bytes = Uint8Array.from(atob(text.trim()), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new /** @type {any} */ (globalThis).DecompressionStream("deflate"));
  return parseJson(await new Response(stream).text());
}

/** @type {Record<string, (run: any) => any>} */
const SORT_VALUES = {
  position: (run) => run.position,
  case: (run) => run.case_id,
  target: (run) => run.target,
  status: (run) => listStatus(run),
  score: (run) => run.result?.score ?? -Infinity,
  latency: (run) => run.latency_ms ?? -Infinity,
  tokens: (run) => run.tokens_usage?.total_tokens ?? -1,
  cost: (run) => run.cost_usd ?? -Infinity,
};

/** @param {any} run */
export function listStatus(run) {
  return run.result ? run.result.status : "unfinished";
}

/**
 * @param {any} run
 * @param {Query} query
 */
function meets(run, query) {
  const text = String(query.text || "").toLowerCase();
  return (
    (!query.status || query.status.split(",").includes(listStatus(run))) &&
    (!query.eval_id || run.eval_id === query.eval_id) &&
    (!query.case_id || run.case_id === query.case_id) &&
    (!query.target || run.target === query.target) &&
    (query.persona === undefined || query.persona === null || (run.persona_id || "") === query.persona) &&
    (!query.tool || run.tools.includes(query.tool)) &&
    (!query.tag || run.tags.includes(query.tag)) &&
    (!query.evaluator || run.not_passed.includes(query.evaluator)) &&
    (!query.failure || run.failure === query.failure) &&
    (!query.label || run.label?.label === query.label) &&
    (!text || run.words.includes(text))
  );
}

/** The data of a report. */
export class FileSource {
  constructor() {
    this.isLive = false;
    this.isReport = true;
    /** @type {Promise<any>} */
    this.index = readBlock("agentv-index");
    /** @type {Map<number, Promise<any>>} */
    this.blocks = new Map();
  }

  /**
   * Return the runs that meet the conditions.
   * @param {Query} query
   * @returns {Promise<any[]>}
   */
  async find(query) {
    const index = await this.index;
    let runs = index.runs.filter((/** @type {any} */ run) => meets(run, query));
    if (String(query.flaky) === "true") {
      const flaky = new Set(flakyCases(index.runs));
      runs = runs.filter((/** @type {any} */ run) => flaky.has(caseKey(run)));
    }
    return runs;
  }

  async executions() {
    return { executions: [(await this.index).execution], next: null };
  }

  async execution() {
    return (await this.index).execution;
  }

  /**
   * @param {string} _id
   * @param {Query} query
   */
  async runs(_id, query) {
    const value = SORT_VALUES[query.sort || "position"];
    const sign = query.order === "desc" ? -1 : 1;
    const runs = await this.find(query);
    runs.sort((a, b) => sign * compareValues(value(a), value(b)) || sign * (a.position - b.position));
    const start = Number(query.cursor || 0);
    const end = start + Number(query.limit || 100);
    const next = end < runs.length ? String(end) : null;
    return { runs: runs.slice(start, end), next, total: start ? null : runs.length, is_partial: false };
  }

  /**
   * @param {string} _id
   * @param {Query} query
   */
  async cases(_id, query) {
    /** @type {Map<string, any>} */
    const cells = new Map();
    for (const run of await this.find(query)) {
      const key = caseKey(run);
      const names = { eval_id: run.eval_id, case_id: run.case_id, target: run.target, persona_id: run.persona_id };
      const cell = cells.get(key) || { ...names, passed: 0, failed: 0, errors: 0, unfinished: 0, scores: [], key: "" };
      cells.set(key, cell);
      const status = listStatus(run);
      /** @type {Record<string, string>} */
      const counters = { pass: "passed", fail: "failed", error: "errors", unfinished: "unfinished" };
      cell[counters[status]] += 1;
      if (run.result?.score !== null && run.result) cell.scores.push(run.result.score);
      if (!cell.key || (status !== "pass" && cell.isPass)) {
        cell.key = run.key;
        cell.isPass = status === "pass";
      }
    }
    const all = [...cells.values()];
    for (const cell of all) cell.score = cell.scores.length ? average(cell.scores) : null;
    const names = new Set(all.map((cell) => JSON.stringify([cell.eval_id, cell.case_id])));
    return { cells: all, next: null, total: names.size };
  }

  async facets() {
    return (await this.index).facets;
  }

  async evaluators() {
    return { evaluators: (await this.index).evaluators };
  }

  /**
   * @param {string} _id
   * @param {Query} query
   */
  async failures(_id, query) {
    /** @type {Map<string, any>} */
    const groups = new Map();
    for (const run of await this.find(query)) {
      if (!run.failure) continue;
      const key = JSON.stringify([run.failure, listStatus(run)]);
      const group = groups.get(key) || { failure: run.failure, status: listStatus(run), runs: 0, key: run.key };
      group.runs += 1;
      groups.set(key, group);
    }
    return { failures: [...groups.values()].sort((a, b) => b.runs - a.runs).slice(0, 50) };
  }

  /**
   * @param {string} _id
   * @param {Query} query
   */
  async charts(_id, query) {
    return { charts: histograms(await this.find(query), listStatus) };
  }

  /**
   * @param {string} id
   * @returns {Promise<any>}
   */
  async entry(id) {
    const index = await this.index;
    const run = index.runs.find((/** @type {any} */ each) => each.id === id || `${each.execution_id}-${each.key}` === id);
    if (!run) throw new Error(`This report holds no run ${id}.`);
    return this.part(run.block, run.key);
  }

  /**
   * @param {number | null} number
   * @param {string} name
   * @returns {Promise<any>}
   */
  async part(number, name) {
    if (number === null) throw new Error("This report holds only the row of this run, to stay small; the store has all of it.");
    let block = this.blocks.get(number);
    if (!block) {
      block = readBlock(`agentv-block-${number}`);
      this.blocks.set(number, block);
    }
    return (await block)[name];
  }

  /**
   * @param {string} _id
   * @param {Query} query
   * @returns {Promise<any>}
   */
  async repeats(_id, query) {
    const { repeats } = await this.index;
    const found = repeats.filter((/** @type {any} */ each) => each.case_id === query.case_id && (!query.eval_id || each.eval_id === query.eval_id) && (!query.target || each.target === query.target));
    const wanted = query.persona === undefined || query.persona === null ? found[0] : found.find((/** @type {any} */ each) => (each.persona_id || "") === query.persona);
    if (!wanted) throw new Error(`This report holds no repetitions of case ${query.case_id}.`);
    const personas = [...new Set(found.map((/** @type {any} */ each) => each.persona_id || ""))].sort().map((name) => name || null);
    return { ...(await this.part(wanted.block, wanted.name)), personas };
  }

  /** @param {string} id */
  async run(id) {
    return (await this.entry(id)).head;
  }

  /** @param {string} id */
  async messages(id) {
    return (await this.entry(id)).window;
  }

  /**
   * @param {string} id
   * @param {string} form
   * @returns {Promise<string>}
   */
  async copy(id, form) {
    return (await this.entry(id)).copy[form];
  }

  /** @returns {Promise<string>} */
  async changes() {
    return "";
  }

  /** @param {string} _id */
  recordLink(_id) {
    return null;
  }
}

/** @param {any} run */
function caseKey(run) {
  return JSON.stringify([run.eval_id, run.case_id, run.target, run.persona_id]);
}

/** @param {any[]} runs */
function flakyCases(runs) {
  /** @type {Map<string, Set<string>>} */
  const seen = new Map();
  for (const run of runs) {
    const key = caseKey(run);
    seen.set(key, (seen.get(key) || new Set()).add(listStatus(run)));
  }
  return [...seen].filter(([, statuses]) => statuses.has("pass") && statuses.has("fail")).map(([key]) => key);
}

/**
 * @param {any} a
 * @param {any} b
 */
function compareValues(a, b) {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** @param {number[]} values */
function average(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
