// The data in a report as the source of all pages: the same answers as those of the API.
import { histograms } from "./histograms.js";
import { parseJson } from "./values.js";

/** @typedef {Record<string, any>} Query */

/**
 * Return the JSON lines in a compressed block of the page; the first line of a block names the words of its codes.
 * @param {string} id
 * @returns {Promise<string[]>}
 */
async function readBlock(id) {
  const text = document.getElementById(id)?.textContent;
  if (!text) throw new Error("A part of this report is missing: it was cut, or changed.");
  const bytes = Uint8Array.from(atob(text.trim()), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new /** @type {any} */ (globalThis).DecompressionStream("deflate"));
  const lines = await new Response(stream).text();
  const end = lines.indexOf("\n");
  const words = JSON.parse(lines.slice(0, end));
  const wordOf = (/** @type {string} */ code) => words[code.charCodeAt(0) - (code > "\n" ? 1 : 0)] ?? code;
  return lines.slice(end + 1).replace(/[\x00-\x09\x0b-\x1f]/g, wordOf).split("\n");
}

/**
 * Return the literal of a text in Python.
 * @param {string} text
 */
function pythonLiteral(text) {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}

/**
 * Return the messages of a reply, as the API does, with those before and after it.
 * @param {any} entry
 * @param {string} reply
 */
function windowOf(entry, reply) {
  const sent = reply ? parseJson(reply).output_messages || [] : [];
  let number = 0;
  const messages = [...entry.prompt, ...sent, ...entry.added].map((/** @type {any} */ message, index) => {
    const { tool_calls: calls, ...rest } = message;
    if (!calls?.length) return { index, ...rest };
    const first = number;
    if (index >= entry.prompt.length) number += calls.length;
    return { index, ...rest, tool_calls: calls.map((/** @type {any} */ call, /** @type {number} */ at) => ({ number: first + at, ...call })) };
  });
  return { from: 0, total: messages.length, messages };
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
    this.index = readBlock("agentv-index").then(([line]) => parseJson(line));
    /** @type {Map<number, Promise<string[]>>} */
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
   * Return a run: its row, its entry, and its reply if that is apart from the entry.
   * @param {string} id
   * @returns {Promise<{ row: any, entry: any, reply: string }>}
   */
  async entry(id) {
    const index = await this.index;
    const run = index.runs.find((/** @type {any} */ each) => each.id === id || `${each.execution_id}-${each.key}` === id);
    if (!run) throw new Error(`This report holds no run ${id}.`);
    const [line, reply] = await this.part(run.block, run.key);
    return { row: run, entry: parseJson(line), reply };
  }

  /**
   * Return the lines of an entry of a block.
   * @param {number | null} number
   * @param {string} name
   * @returns {Promise<[string, string]>}
   */
  async part(number, name) {
    if (number === null) throw new Error("This report holds only the row of this run, to stay small; the store has all of it.");
    let block = this.blocks.get(number);
    if (!block) {
      block = readBlock(`agentv-block-${number}`);
      this.blocks.set(number, block);
    }
    const [head, ...lines] = await block;
    const names = JSON.parse(head);
    const at = names.indexOf(name);
    return [lines[at], lines[at + names.length]];
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
    const [line] = await this.part(wanted.block, wanted.name);
    return { ...parseJson(line), persona_id: wanted.persona_id, personas };
  }

  /** @param {string} id */
  async run(id) {
    const { shared } = await this.index;
    const { row, entry } = await this.entry(id);
    return { ...Object.fromEntries(shared.map((/** @type {string} */ name) => [name, row[name]])), ...entry.head };
  }

  /** @param {string} id */
  async messages(id) {
    const { entry, reply } = await this.entry(id);
    return entry.window || windowOf(entry, reply);
  }

  /**
   * @param {string} id
   * @param {string} form
   * @returns {Promise<string>}
   */
  async copy(id, form) {
    const { entry, reply } = await this.entry(id);
    if (form === "command") return entry.head.command;
    const text = entry.copy[form];
    return typeof text === "string" ? text : text.join(pythonLiteral(reply));
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
