// Elements made of text nodes only: no text of an agent is ever parsed as HTML.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Return an element with these attributes and children; `on…` attributes are listeners.
 * @param {string} tag
 * @param {Record<string, any> | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  append(element, children);
  return element;
}

/**
 * Return an SVG element.
 * @param {string} tag
 * @param {Record<string, any> | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(element, attributes);
  append(element, children);
  return element;
}

/**
 * @param {Element} element
 * @param {Record<string, any> | null | undefined} attributes
 */
function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * @param {Element} element
 * @param {(Child | Child[])[]} children
 */
function append(element, children) {
  for (const child of /** @type {Child[]} */ (children.flat(Infinity))) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(visibleText(String(child))));
  }
}

const INVISIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/**
 * Return a text in which control characters are written out: they could hide or turn the text beside them.
 * @param {string} text
 */
export function visibleText(text) {
  return text.replace(INVISIBLE, (each) => `⟨U+${each.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/**
 * Replace the content of an element.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/**
 * Return a link to a page of the viewer.
 * @param {string[]} path
 * @param {Record<string, any>} [query]
 */
export function pageLink(path, query = {}) {
  const pairs = Object.entries(query).filter(([name, value]) => (value !== "" || name === "persona") && value !== null && value !== undefined);
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

/**
 * Say something to people who cannot see the page change.
 * @param {string} text
 */
export function announce(text) {
  const status = document.getElementById("status");
  if (status) status.textContent = text;
}

/**
 * Return a message about something that could not be shown.
 * @param {unknown} error
 */
export function problemBox(error) {
  const message = error instanceof Error ? error.message : String(error);
  return h("div", { class: "problem", role: "alert" }, h("strong", null, "This could not be shown. "), message);
}
