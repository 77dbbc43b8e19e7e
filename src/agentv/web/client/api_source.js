// The JSON API as the source of all pages.
import { parseJson } from "./values.js";

/** @typedef {Record<string, any>} Query */

/** Bytes of a record that the page reads as a whole. */
const WHOLE_RECORD = 2_000_000;
/** Characters of a larger one. */
const RECORD_START = 10_000;

/** Error of the API, with its code. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {string} code
   */
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

/**
 * @param {string} path
 * @param {Query} [query]
 * @param {RequestInit} [options]
 * @returns {Promise<any>}
 */
async function request(path, query = {}, options = {}) {
  const pairs = Object.entries(query).filter(([name, value]) => (value !== "" || name === "persona") && value !== null && value !== undefined);
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return read(await send(`${path}${search ? `?${search}` : ""}`, options));
}

/**
 * Return the data of an answer.
 * @param {Response} response
 * @returns {Promise<any>}
 */
async function read(response) {
  const text = await response.text().catch(() => "");
  let body = null;
  try {
    body = parseJson(text);
  } catch {
    if (response.ok) throw new ApiError("The answer of the viewer was cut off: reload the page.", "unreadable");
  }
  if (!response.ok) {
    const error = (body && body.error) || {};
    throw new ApiError(error.message || `the viewer answered ${response.status}`, error.code || "unknown");
  }
  return body;
}

/**
 * @param {string} path
 * @param {RequestInit} [options]
 */
async function send(path, options = {}) {
  try {
    return await fetch(`api/v1/${path}`, options);
  } catch {
    throw new ApiError("The viewer does not answer: is `agentv view` still running?", "unreachable");
  }
}

/**
 * Return the first characters of an answer, and leave the rest.
 * @param {Response} response
 * @param {number} size
 */
async function beginning(response, size) {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (reader && text.length < size) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  await reader?.cancel();
  return text.slice(0, size);
}

const part = encodeURIComponent;

/** The store of the server. */
export class ApiSource {
  constructor() {
    this.isLive = true;
    this.isReport = false;
  }

  /** @param {Query} query */
  executions(query) {
    return request("executions", query);
  }

  /** @param {string} id */
  execution(id) {
    return request(`executions/${part(id)}`);
  }

  /**
   * @param {string} id
   * @param {Query} query
   */
  runs(id, query) {
    return request(`executions/${part(id)}/runs`, query);
  }

  /**
   * @param {string} id
   * @param {Query} query
   */
  cases(id, query) {
    return request(`executions/${part(id)}/cases`, query);
  }

  /** @param {string} id */
  facets(id) {
    return request(`executions/${part(id)}/facets`);
  }

  /** @param {string} id */
  evaluators(id) {
    return request(`executions/${part(id)}/evaluators`);
  }

  /**
   * @param {string} id
   * @param {Query} query
   */
  failures(id, query) {
    return request(`executions/${part(id)}/failures`, query);
  }

  /**
   * @param {string} id
   * @param {Query} query
   */
  charts(id, query) {
    return request(`executions/${part(id)}/charts`, query);
  }

  /**
   * @param {string} id
   * @param {Query} query
   */
  repeats(id, query) {
    return request(`executions/${part(id)}/repeats`, query);
  }

  /** @param {string} id */
  run(id) {
    return request(`runs/${part(id)}`);
  }

  /**
   * @param {string} id
   * @param {Query} query
   */
  messages(id, query) {
    return request(`runs/${part(id)}/messages`, query);
  }

  /**
   * @param {string} id
   * @param {string} form
   * @returns {Promise<string>}
   */
  async copy(id, form) {
    return (await request(`runs/${part(id)}/copy`, { form })).text;
  }

  /**
   * Return everything that is stored of a run as indented JSON; of a very large record, its beginning.
   * @param {string} id
   * @returns {Promise<string | {$cut: string, bytes: number}>}
   */
  async record(id) {
    const response = await send(`runs/${part(id)}/record`);
    const bytes = Number(response.headers.get("Content-Length"));
    if (response.ok && bytes > WHOLE_RECORD) return { $cut: await beginning(response, RECORD_START), bytes };
    return JSON.stringify(await read(response), null, 2);
  }

  /** @param {string} id */
  recordLink(id) {
    return `api/v1/runs/${part(id)}/record`;
  }

  /**
   * @param {string} id
   * @param {string | null} label
   * @param {string} note
   */
  setLabel(id, label, note) {
    const token = document.querySelector('meta[name="agentv-token"]')?.getAttribute("content") || "";
    return request(`runs/${part(id)}/label`, {}, {
      method: "PUT",
      headers: { "Content-Type": "application/json", "X-Agentv-Token": token },
      body: JSON.stringify({ label, note }),
    });
  }

  /**
   * @param {string} a
   * @param {string} b
   */
  compare(a, b) {
    return request("compare", { a, b });
  }

  /** @returns {Promise<string>} */
  async changes() {
    return (await request("changes")).token;
  }
}
