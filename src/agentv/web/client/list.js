// A list of any length: only the rows that can be seen are in the page.
import { fill, h } from "./dom.js";

const OVERSCAN = 10;
const NEAR_END = 40;

/**
 * @typedef {object} ListOptions
 * @property {(row: any, at: number) => HTMLElement} render
 * @property {() => Promise<boolean>} [more] loads further rows; resolves to false at the end
 * @property {string} label
 */

/** Rows of equal height that scroll with the page. */
export class VirtualList {
  /** @param {ListOptions} options */
  constructor(options) {
    this.options = options;
    /** @type {any[]} */
    this.rows = [];
    this.active = -1;
    this.first = -1;
    this.last = -1;
    this.isLoading = false;
    this.atEnd = false;
    this.body = h("div", { class: "rows", role: "rowgroup" });
    this.problem = h("div", { class: "problem", role: "alert", hidden: true });
    this.element = h("div", { class: "list", role: "presentation" }, this.body, this.problem);
    this.onScroll = () => this.draw();
    addEventListener("scroll", this.onScroll, { passive: true });
    addEventListener("resize", this.onScroll, { passive: true });
  }

  close() {
    removeEventListener("scroll", this.onScroll);
    removeEventListener("resize", this.onScroll);
  }

  /**
   * @param {any[]} rows
   * @param {boolean} [isFirst] they come before the others
   */
  add(rows, isFirst = false) {
    if (isFirst) this.rows = [...rows, ...this.rows];
    else this.rows.push(...rows);
    this.draw(true);
  }

  height() {
    return parseFloat(getComputedStyle(this.body).getPropertyValue("--row")) || 40;
  }

  draw(isForced = false) {
    if (!this.body.isConnected) return;
    const size = this.height();
    const top = this.body.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / size) - OVERSCAN);
    const last = Math.min(this.rows.length, Math.ceil((innerHeight - top) / size) + OVERSCAN);
    this.body.style.height = `${this.rows.length * size}px`;
    if (isForced || first !== this.first || last !== this.last) {
      const focused = document.activeElement?.closest(".row")?.getAttribute("data-at");
      this.first = first;
      this.last = last;
      fill(this.body, this.rows.slice(first, Math.max(first, last)).map((row, offset) => this.place(row, first + offset, size)));
      if (focused) this.focusLink(Number(focused));
    }
    if (last > this.rows.length - NEAR_END) this.load();
  }

  /**
   * @param {any} row
   * @param {number} at
   * @param {number} size
   */
  place(row, at, size) {
    const element = this.options.render(row, at);
    element.classList.add("row");
    element.setAttribute("data-at", String(at));
    element.setAttribute("aria-rowindex", String(at + 2));
    element.style.top = `${at * size}px`;
    return element;
  }

  async load() {
    if (this.isLoading || this.atEnd || !this.options.more || !this.problem.hidden) return;
    this.isLoading = true;
    try {
      this.atEnd = !(await this.options.more());
    } catch (error) {
      const again = () => {
        this.problem.hidden = true;
        this.load();
      };
      fill(this.problem, h("strong", null, "Further rows could not be loaded. "), error instanceof Error ? error.message : String(error), " ", h("button", { type: "button", onclick: again }, "Try again"));
      this.problem.hidden = false;
    } finally {
      this.isLoading = false;
    }
    if (!this.atEnd && this.problem.hidden) this.draw();
  }

  /** @param {number} step */
  move(step) {
    const at = Math.min(this.rows.length - 1, Math.max(0, this.active + step));
    if (this.rows.length) this.focus(at, true);
  }

  /**
   * @param {number} at
   * @param {boolean} scrolls
   */
  focus(at, scrolls) {
    this.active = at;
    if (scrolls) {
      const size = this.height();
      const top = this.body.getBoundingClientRect().top + at * size;
      if (top < 80 || top + size > innerHeight) scrollBy(0, top - innerHeight / 2);
      this.draw();
    }
    this.focusLink(at);
  }

  /** @param {number} at */
  focusLink(at) {
    const link = this.body.querySelector(`[data-at="${at}"] a`);
    if (link instanceof HTMLElement) link.focus({ preventScroll: true });
  }
}
