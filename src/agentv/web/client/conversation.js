// The conversation of a run: turns, messages, and calls folded into the messages that made them.
import { fill, h, problemBox } from "./dom.js";
import { cost, count, duration, plural, tokens } from "./format.js";
import { callArguments, fold, inlineValue, valueBlock } from "./values.js";

/** A window of the messages of one run. */
export class Conversation {
  /**
   * @param {any} source
   * @param {any} run
   * @param {(calls: any[]) => void} onCalls receives the calls of the window
   */
  constructor(source, run, onCalls) {
    this.source = source;
    this.run = run;
    this.id = `${run.execution_id}-${run.key}`;
    this.onCalls = onCalls;
    this.start = 0;
    this.element = h("div", { class: "conversation" });
  }

  /** @param {Record<string, any>} query */
  async show(query) {
    try {
      const page = await this.source.messages(this.id, query);
      this.start = page.from;
      this.draw(page);
    } catch (error) {
      fill(this.element, problemBox(error));
    }
  }

  /** @param {any} page */
  draw(page) {
    const { messages, total } = page;
    const end = page.from + messages.length;
    /** @type {any[]} */
    const parts = [];
    const turns = new Map((this.run.turns || []).map((/** @type {any} */ turn) => [turn.first_message, turn]));
    for (const message of messages) {
      const turn = turns.get(message.index);
      if (turn) parts.push(turnHead(turn));
      parts.push(this.message(message));
    }
    const isCut = page.from > 0 || end < total;
    const pager = () => (isCut ? this.pager(page.from, end, total) : null);
    fill(this.element, pager(), parts.length ? parts : h("p", { class: "quiet" }, "There are no messages."), pager());
    this.onCalls(messages.flatMap((/** @type {any} */ message) => message.tool_calls || []));
  }

  /**
   * @param {number} from
   * @param {number} end
   * @param {number} total
   */
  pager(from, end, total) {
    const move = (/** @type {string} */ text, /** @type {number} */ to, /** @type {boolean} */ isOff) => h("button", { type: "button", disabled: isOff, onclick: () => this.show({ from: to }) }, text);
    if (this.source.isReport) return h("p", { class: "cut" }, `This report holds the first ${count(end)} of ${plural(total, "message")}; the run store has all of them.`);
    return h("p", { class: "pager" }, move("Earlier", Math.max(0, from - 200), from === 0), h("span", null, `messages ${count(from)} to ${count(end - 1)} of ${count(total)}`), move("Later", end, end >= total), move("Last", Math.max(0, total - 100), end >= total));
  }

  /** @param {any} message */
  message(message) {
    const record = this.source.recordLink(this.id);
    const isSent = message.index >= this.run.output_from;
    const role = String(message.role);
    const known = ["user", "assistant", "system", "tool"].includes(role) ? role : "other";
    const usage = tokens(message.tokens_usage);
    return h(
      "article",
      { class: `message message-${known}`, id: `message-${message.index}`, tabindex: "-1", "aria-label": `Message ${message.index}, ${role}`, "data-item": "" },
      h("header", null, h("strong", null, role), message.name ? h("span", { class: "mono" }, inlineValue(message.name, 60)) : null, h("span", { class: "quiet number" }, `#${message.index}`), isSent && this.run.output_from ? h("span", { class: "quiet", title: "number in output_messages" }, `output ${message.index - this.run.output_from}`) : null, usage === null ? null : h("span", { class: "quiet" }, `${count(usage)} tokens`)),
      contentParts(message.content, record),
      (message.tool_calls || []).map((/** @type {any} */ call) => callCard(call, record)),
      message.metadata ? fold("Metadata", () => valueBlock(message.metadata, record)) : null,
    );
  }
}

/** @param {any} turn */
function turnHead(turn) {
  const facts = [
    typeof turn.latency_ms === "number" ? duration(turn.latency_ms) : null,
    tokens(turn.tokens_usage) === null ? null : `${count(tokens(turn.tokens_usage))} tokens`,
    typeof turn.cost_usd === "number" ? cost(turn.cost_usd) : null,
    typeof turn.calls === "number" ? plural(turn.calls, "call") : "calls unknown",
    turn.attempts > 1 ? plural(turn.attempts, "attempt") : null,
  ].filter(Boolean);
  return h("h3", { class: "turn" }, `Turn ${turn.index}`, h("span", { class: "quiet" }, facts.join(" · ")));
}

/**
 * @param {any} content
 * @param {string | null} record
 */
function contentParts(content, record) {
  if (content === null || content === undefined || content === "") return null;
  if (typeof content === "string") return h("div", { class: "text" }, content);
  if (!Array.isArray(content)) return valueBlock(content, record);
  return content.map((block) => {
    if (block && block.type !== "reasoning" && block.type !== "thinking" && typeof block.text === "string") return h("div", { class: "text" }, block.text);
    const type = block && typeof block.type === "string" ? block.type : "block";
    return fold(h("span", { class: "quiet" }, inlineValue(type, 60)), () => valueBlock(block, record));
  });
}

/**
 * @param {any} call
 * @param {string | null} record
 */
export function callCard(call, record) {
  const isBad = call.status === "error" || call.status === "denied" || (call.error !== undefined && call.error !== null);
  const status = call.status && call.status !== "ok" ? h("span", { class: "chip chip-fail" }, call.status) : isBad ? h("span", { class: "chip chip-fail" }, "error") : null;
  const summary = h("span", { class: "call-head" }, h("span", { class: "quiet number" }, `call ${call.number}`), h("span", { class: "mono call-name" }, h("b", null, call.tool || "(no name)"), callArguments(call.input)), status, typeof call.duration_ms === "number" ? h("span", { class: "quiet number" }, duration(call.duration_ms)) : null);
  const row = (/** @type {string} */ name, /** @type {any} */ value) => (value === undefined ? null : [h("dt", null, name), h("dd", null, valueBlock(value, record))]);
  const content = () => h("dl", { class: "call-body" }, row("input", call.input), "output" in call ? row("output", call.output) : [h("dt", null, "output"), h("dd", { class: "quiet" }, "not reported")], row("error", call.error ?? undefined), row("id", call.id ?? undefined), row("time", call.timestamp ?? undefined), row("metadata", call.metadata ?? undefined));
  const element = fold(summary, content);
  element.classList.add("call");
  if (isBad) element.classList.add("call-bad");
  element.id = `call-${call.number}`;
  return element;
}
