// The viewer: which page is shown, keys, and changes of the store.
import { ApiSource } from "./api_source.js";
import { announce, fill, h, pageLink, problemBox } from "./dom.js";
import { comparePage, labelsPage, repeatsPage } from "./compare_page.js";
import { executionPage } from "./execution_page.js";
import { executionsPage } from "./executions_page.js";
import { FileSource } from "./file_source.js";
import { runPage } from "./run_page.js";

const POLL_MS = 1000;
/** The viewer rests this many times as long as its answers took, so that it takes little of an execution under way. */
const REST = 4;
const KEYS = [["j / k", "next / previous item"], ["Enter", "open it"], ["/", "search"], ["f", "failures only"], ["u", "one level up"], ["?", "this help"], ["Esc", "close, or leave the search"]];

class App {
  constructor() {
    this.source = document.getElementById("agentv-index") ? new FileSource() : new ApiSource();
    /** @type {HTMLElement} */
    this.main = /** @type {HTMLElement} */ (document.getElementById("main"));
    /** @type {any} */
    this.list = null;
    /** @type {(() => any) | null} */
    this.refresh = null;
    /** @type {((query: URLSearchParams) => any) | null} */
    this.onQuery = null;
    /** @type {(() => Element[]) | null} */
    this.items = null;
    /** @type {Record<string, () => any>} */
    this.keys = {};
    /** @type {(() => any)[]} */
    this.leaving = [];
    this.number = 0;
    this.path = "";
    this.token = "";
    this.problem = h("div", { class: "problem", role: "alert", hidden: true });
  }

  start() {
    const bar = document.getElementById("bar");
    if (bar) fill(bar, h("a", { href: "#/", class: "brand" }, "agentv"), h("nav", { "aria-label": "Main" }, h("a", { href: "#/" }, "Executions"), this.source.isReport ? null : h("a", { href: "#/labels" }, "Labels")), h("button", { type: "button", class: "plain-button", "aria-label": "Keys", onclick: () => this.help() }, "?"));
    addEventListener("hashchange", () => this.route());
    addEventListener("keydown", (event) => this.key(event));
    document.querySelector(".skip")?.addEventListener("click", (event) => {
      event.preventDefault();
      this.main.focus();
    });
    this.route();
    if (this.source.isLive) this.poll();
  }

  /** @param {...any} children */
  show(...children) {
    fill(this.main, this.problem, children);
  }

  /** @param {() => any} action */
  onLeave(action) {
    this.leaving.push(action);
  }

  async route() {
    const place = location.hash;
    const [path, search] = place.replace(/^#\/?/, "").split("?");
    const query = new URLSearchParams(search || "");
    if (path === this.path && this.onQuery) {
      await this.onQuery(query);
      return this.ready(place);
    }
    this.leaving.forEach((action) => action());
    Object.assign(this, { leaving: [], list: null, refresh: null, onQuery: null, items: null, keys: {}, path });
    this.number += 1;
    const number = this.number;
    const parts = path.split("/").map(safeDecode);
    try {
      await this.page(parts, query);
      if (number === this.number) this.entered(query);
    } catch (error) {
      if (number === this.number) this.show(h("p", null, h("a", { href: "#/" }, "Executions")), problemBox(error));
    }
    return number === this.number ? this.ready(place) : undefined;
  }

  /**
   * Mark the page as complete, for tests and screenshots.
   * @param {string} place
   */
  ready(place) {
    this.main.setAttribute("data-ready", place);
  }

  /**
   * @param {string[]} parts
   * @param {URLSearchParams} query
   */
  page(parts, query) {
    const [kind, id, other] = parts;
    if (kind === "executions" && id) return executionPage(this, id, query);
    if (kind === "runs" && id) return runPage(this, id, query);
    if (kind === "compare" && id && other) return comparePage(this, id, other);
    if (kind === "repeats" && id) return repeatsPage(this, id, query);
    if (kind === "labels" && !this.source.isReport) return labelsPage(this);
    if (this.source instanceof FileSource && !kind) return this.onlyExecution();
    return executionsPage(this);
  }

  /** A report holds one execution: its page is the first one. */
  async onlyExecution() {
    const { executions } = await this.source.executions({});
    location.replace(pageLink(["executions", executions[0].id]));
  }

  /** @param {URLSearchParams} query */
  entered(query) {
    const title = this.main.querySelector("h1");
    document.title = `${title ? title.textContent : "agentv"} · agentv`;
    if (!query.has("call") && !query.has("message")) scrollTo(0, 0);
  }

  /** Look for changes of the store, also by other processes. */
  async poll() {
    const start = performance.now();
    try {
      const token = await this.source.changes();
      const isNew = token !== this.token && this.token !== "";
      this.token = token;
      if (!this.problem.hidden) {
        this.problem.hidden = true;
        if (!isNew) await this.refresh?.();
      }
      if (isNew && !document.hidden) await this.refresh?.();
    } catch (error) {
      this.problem.hidden = false;
      fill(this.problem, error instanceof Error ? error.message : String(error));
      if (!this.problem.isConnected) this.main.prepend(this.problem);
    }
    setTimeout(() => this.poll(), Math.max(POLL_MS, REST * (performance.now() - start)));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const isTyping = event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === "Escape") {
      document.querySelector("dialog[open]")?.dispatchEvent(new Event("cancel"));
      if (isTyping) this.main.focus();
      return;
    }
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = { j: () => this.move(1), k: () => this.move(-1), "/": () => this.search(), "?": () => this.help(), u: () => this.up(), ...this.keys }[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  }

  /** @param {number} step */
  move(step) {
    if (this.list) return this.list.move(step);
    const items = this.items ? this.items() : [];
    const at = items.findIndex((item) => item === document.activeElement || item.contains(document.activeElement));
    const next = items[Math.min(items.length - 1, Math.max(0, at + step))];
    if (next instanceof HTMLElement) {
      next.focus();
      next.scrollIntoView({ block: "nearest" });
    }
    return undefined;
  }

  search() {
    const search = document.getElementById("search");
    if (search) search.focus();
  }

  up() {
    const links = [...document.querySelectorAll(".crumbs a")];
    const last = links[links.length - 1];
    location.hash = last ? last.getAttribute("href") || "#/" : "#/";
  }

  help() {
    const close = () => dialog.remove();
    const dialog = h("dialog", { "aria-label": "Keys", oncancel: close, onclose: close }, h("h2", null, "Keys"), h("dl", { class: "keys" }, KEYS.flatMap(([key, text]) => [h("dt", null, h("kbd", null, key)), h("dd", null, text)])), h("button", { type: "button", onclick: close }, "Close"));
    document.body.append(dialog);
    if (dialog instanceof HTMLDialogElement) dialog.showModal();
    announce("Keys");
  }
}

/** @param {string} text */
function safeDecode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

new App().start();
