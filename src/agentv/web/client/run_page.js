// One run: verdicts with the aligned trajectory, timeline, conversation, label, and what is stored of it.
import { announce, fill, h, pageLink, problemBox } from "./dom.js";
import { callCount, cost, count, duration, plural, score, time, tokens } from "./format.js";
import { timeline } from "./charts.js";
import { Conversation } from "./conversation.js";
import { evaluatorCard, verdictChip } from "./diff.js";
import { fold, inlineValue, valueBlock } from "./values.js";

const MAX_TIMELINE = 60;
/** Characters of a raw record that are shown. */
const MAX_RECORD = 10_000;
/** @type {Record<string, string>} */
const ENDINGS = { goal: "goal reached", agent: "by the agent", user: "by the user", limit: "at its limit", error: "by an error" };
/** @type {Record<string, string>} */
const FAULTS = { agent: "the agent", simulator: "the simulated user", environment: "the environment" };

/**
 * @param {any} app
 * @param {string} id
 * @param {URLSearchParams} query
 */
export async function runPage(app, id, query) {
  const run = await app.source.run(id);
  const name = `${run.execution_id}-${run.key}`;
  const record = app.source.recordLink(name);
  const link = (/** @type {string} */ kind, /** @type {number} */ number) => pageLink(["runs", name], { [kind]: number });
  const lane = h("div");
  const conversation = new Conversation(app.source, run, (calls) => fill(lane, calls.length ? timelinePanel(calls, link) : null));
  const order = { fail: 0, error: 0, pass: 1, skipped: 2 };
  const rank = (/** @type {any} */ each) => order[/** @type {keyof typeof order} */ (each.status)] ?? 1;
  const evaluators = [...run.evaluators].sort((a, b) => rank(a) - rank(b));
  app.show(
    head(run, name, app),
    notices(run),
    h("section", { "aria-label": "Evaluators" }, h("h2", null, "Evaluators"), evaluators.length ? evaluators.map((each) => evaluatorCard(run, each, link, record)) : h("p", { class: "quiet" }, run.result ? "No evaluator gave a result." : "There is no result yet.")),
    answer(run, record),
    labelPanel(app, run, name),
    lane,
    h("section", { "aria-label": "Conversation" }, h("h2", null, "Conversation ", h("span", { class: "quiet" }, `${plural(run.messages, "message")}, ${run.calls === null ? "calls unknown" : `${run.calls_complete === false ? "at least " : ""}${plural(run.calls, "call")}`}`)), run.is_reply_stored ? null : h("p", { class: "quiet" }, "The reply was not stored (persist: summary), or the run has none yet."), conversation.element),
    h("section", { "aria-label": "Details" }, h("h2", null, "Stored data"), details(app.source, run, record)),
  );
  app.items = () => [...document.querySelectorAll(".evaluator > summary, [data-item]")];
  const cited = target(query);
  await conversation.show(cited && cited.call !== null && cited.call > 0 ? { call: cited.call } : { from: cited ? Math.max(0, cited.message - 5) : 0 });
  reveal(query);
  app.onQuery = async (/** @type {URLSearchParams} */ next) => {
    const wanted = target(next);
    if (wanted && !document.getElementById(wanted.id)) await conversation.show(wanted.call === null ? { from: Math.max(0, wanted.message - 5) } : { call: wanted.call });
    reveal(next);
  };
  app.refresh = run.result ? null : async () => {
    const now = await app.source.run(id);
    if (now.result || now.status !== run.status) await runPage(app, id, query);
  };
}

/**
 * Return the call or message that the address cites, by its number in the conversation.
 * @param {URLSearchParams} query
 */
function target(query) {
  const call = query.get("call");
  if (call !== null) return { id: `call-${Number(call)}`, call: Number(call), message: 0 };
  const message = query.get("message");
  if (message === null) return null;
  return { id: `message-${Number(message)}`, call: null, message: Number(message) };
}

/** @param {URLSearchParams} query */
function reveal(query) {
  const wanted = target(query);
  const element = wanted && document.getElementById(wanted.id);
  if (!element) return;
  document.querySelectorAll(".cited").forEach((each) => each.classList.remove("cited"));
  element.classList.add("cited");
  if (element instanceof HTMLDetailsElement) element.open = true;
  element.scrollIntoView({ block: "center" });
  const focus = element instanceof HTMLDetailsElement ? element.querySelector("summary") : element;
  if (focus instanceof HTMLElement) focus.focus({ preventScroll: true });
  announce(`Shown: ${wanted.id.replace("-", " ")}`);
}

/**
 * @param {any} run
 * @param {string} name
 * @param {any} app
 */
function head(run, name, app) {
  const status = run.result ? run.result.status : run.status === "running" ? "running" : "unfinished";
  const usage = run.tokens_usage || {};
  const tile = (/** @type {string} */ title, /** @type {any} */ value, /** @type {any} */ note = null) => h("div", { class: "tile" }, h("span", { class: "quiet" }, title), h("span", { class: "tile-value" }, value), note ? h("span", { class: "quiet small" }, note) : null);
  const parts = [usage.input_tokens !== null && usage.input_tokens !== undefined ? `${count(usage.input_tokens)} in` : null, usage.output_tokens !== null && usage.output_tokens !== undefined ? `${count(usage.output_tokens)} out` : null].filter(Boolean).join(", ");
  return h(
    "div",
    null,
    h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "#/" }, "Executions"), " / ", h("a", { href: pageLink(["executions", run.execution_id]), class: "mono" }, run.execution_id), " / ", h("span", { class: "mono" }, run.case_id)),
    h("h1", null, h("span", { class: "mono" }, run.case_id), run.repeat ? ` #${run.repeat + 1}` : "", " ", verdictChip(status)),
    h("p", { class: "quiet" }, `target ${run.target}`, run.persona_id ? ` · persona ${run.persona_id}` : "", ` · eval ${run.eval_id}`, run.place ? ` · ${run.place}` : "", run.started_at ? ` · ${time(run.started_at)}` : ""),
    h("div", { class: "tiles" },
      tile("score", score(run.result?.score)),
      tile("latency", duration(run.latency_ms), run.latency_share_of ? `equal share of a batch of ${run.latency_share_of}` : null),
      tile("tokens", count(tokens(run.tokens_usage)), parts),
      tile("cost", cost(run.cost_usd)),
      tile("calls", callCount(run.calls, run.calls_complete === false), run.calls === null ? (run.result ? "the reply does not report them" : null) : run.calls_complete === false ? "some may be missing" : null),
      run.turns ? tile("turns", count(run.turns.length)) : null,
      run.ended_by ? tile("conversation ended", ENDINGS[run.ended_by] || run.ended_by, run.fault && run.fault !== "none" ? `at fault: ${FAULTS[run.fault] || run.fault}` : null) : null,
      run.simulator?.requests ? tile("user model", plural(run.simulator.requests, "request"), tokens(run.simulator.tokens_usage) === null ? "tokens not reported" : `${count(tokens(run.simulator.tokens_usage))} tokens`) : null,
      run.attempts > 1 ? tile("attempts", count(run.attempts)) : null),
    copyBar(app, run, name),
  );
}

/**
 * @param {any} app
 * @param {any} run
 * @param {string} name
 */
function copyBar(app, run, name) {
  const button = (/** @type {string} */ form, /** @type {string} */ text) => h("button", { type: "button", onclick: async (/** @type {any} */ event) => copyText(event.currentTarget, await app.source.copy(name, form), text) }, text);
  const link = app.source.recordLink(name);
  const repeats = h("a", { class: "button", href: pageLink(["repeats", run.execution_id], { eval_id: run.eval_id, case_id: run.case_id, target: run.target, persona: run.persona_id ?? "" }) }, "All repeats of this case");
  return h("div", { class: "toolbar", role: "toolbar", "aria-label": "Copy" }, button("case", "Copy as eval case"), button("pytest", "Copy as pytest"), button("command", "Copy command"), link ? h("a", { class: "button", href: link, download: "" }, "Download record") : null, repeats);
}

/**
 * @param {HTMLElement} button
 * @param {string} text
 * @param {string} name
 */
async function copyText(button, text, name) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    announce("Copied");
    setTimeout(() => { button.textContent = name; }, 1500);
  } catch {
    const area = h("textarea", { class: "copy-area", rows: "8", readonly: true, "aria-label": "Text to copy" });
    button.closest(".toolbar")?.append(area);
    if (area instanceof HTMLTextAreaElement) {
      area.value = text;
      area.select();
    }
  }
}

/** @param {any} run */
function notices(run) {
  const unread = run.unread || [];
  return h(
    "div",
    null,
    run.error ? h("div", { class: "problem", role: "alert" }, h("strong", null, `The reply is an error (${run.error.kind ?? "unknown"}): `), h("span", { class: "wrap" }, inlineValue(run.error.message ?? run.error, 3000))) : null,
    run.fault && run.fault !== "none" ? h("div", { class: "notice" }, h("strong", null, "The conversation could not be measured. "), `At fault: ${FAULTS[run.fault] || run.fault}.`) : null,
    run.superseded ? h("div", { class: "notice" }, "The case was edited since: this run is no longer part of its execution.") : null,
    unread.length ? h("div", { class: "notice" }, h("strong", null, "Not understood, so calls may be missing:"), h("ul", null, unread.slice(0, 20).map((/** @type {any} */ each) => h("li", null, h("code", null, each.path), ` ${each.reason}`)))) : null,
    run.warnings.length ? fold(plural(run.warnings.length, "warning"), () => h("ul", null, run.warnings.slice(0, 100).map((/** @type {string} */ each) => h("li", null, each)))) : null,
  );
}

/**
 * @param {any} run
 * @param {string | null} record
 */
function answer(run, record) {
  if (!run.answer) return null;
  return h("section", { class: "answer", "aria-label": "Answer" }, h("h2", null, "Answer"), typeof run.answer === "string" ? h("div", { class: "text" }, run.answer) : valueBlock(run.answer, record));
}

/**
 * @param {any[]} calls
 * @param {(kind: string, number: number) => string} link
 */
function timelinePanel(calls, link) {
  const shown = calls.slice(0, MAX_TIMELINE);
  return h("section", { class: "panel", "aria-label": "Timeline" }, fold(h("strong", null, `Timeline of ${plural(calls.length, "call")}`), () => h("div", null, timeline(shown, (call) => link("call", call.number)), calls.length > shown.length ? h("p", { class: "cut" }, `The first ${shown.length} of ${count(calls.length)} calls in this window.`) : null), calls.some((call) => typeof call.duration_ms === "number")));
}

/**
 * @param {any} source
 * @param {any} run
 * @param {string | null} record
 */
function details(source, run, record) {
  const attempts = run.attempt_log.filter((/** @type {any} */ each) => each.error);
  return h(
    "div",
    null,
    attempts.length ? fold(`${plural(attempts.length, "attempt")} failed`, () => h("ul", null, attempts.map((/** @type {any} */ each) => h("li", null, `attempt ${each.number} of round ${each.round}: ${each.error.kind}: ${inlineValue(each.error.message, 500)}`)))) : null,
    fold("Case", () => valueBlock(run.case, record)),
    fold("Target settings", () => valueBlock(run.target_settings, record)),
    run.metadata ? fold("Metadata of the case", () => valueBlock(run.metadata, record)) : null,
    fold("Command that runs it again", () => valueBlock(run.command, record)),
    fold("Run id", () => valueBlock(run.id, record)),
    record ? fold("Raw record", () => rawRecord(source, run, record)) : h("p", { class: "quiet" }, "The raw record is in the run store: ", h("code", null, `agentv runs show ${run.id} --json`)),
  );
}

/**
 * Return the stored record as text, loaded when it is asked for; a long one is cut.
 * @param {any} source
 * @param {any} run
 * @param {string} record
 */
function rawRecord(source, run, record) {
  const box = h("div", null, h("p", { class: "quiet" }, "Loading …"));
  const show = (/** @type {any} */ found) => {
    const isText = typeof found === "string";
    const cut = isText ? { $cut: found.slice(0, MAX_RECORD), characters: found.length, form: "text" } : { ...found, characters: found.bytes, form: "bytes" };
    fill(box, valueBlock(isText && found.length <= MAX_RECORD ? found : cut, record));
  };
  source.record(`${run.execution_id}-${run.key}`).then(show, (/** @type {unknown} */ error) => fill(box, problemBox(error)));
  return box;
}

/**
 * @param {any} app
 * @param {any} run
 * @param {string} name
 */
function labelPanel(app, run, name) {
  if (app.source.isReport) return run.label ? h("p", { class: "notice" }, `Labelled ${run.label.label} by a person`, run.label.note ? `: ${run.label.note}` : ".") : null;
  if (!run.result) return null;
  const state = h("span", { class: "quiet", "aria-live": "polite" });
  const note = h("input", { type: "text", id: "note", placeholder: "Note (optional)", "aria-label": "Note", maxlength: "5000", value: run.label?.note || "" });
  const panel = h("section", { class: "panel label-panel", "aria-label": "Label" });
  const save = async (/** @type {string | null} */ label) => {
    state.textContent = "Saving …";
    try {
      const answer = await app.source.setLabel(name, label, note instanceof HTMLInputElement ? note.value : "");
      run.label = answer.label;
      draw();
      state.textContent = label ? "Saved." : "Removed.";
    } catch (error) {
      fill(state, problemBox(error));
    }
  };
  const draw = () => {
    const button = (/** @type {string} */ label) => h("button", { type: "button", class: `toggle toggle-${label}`, "aria-pressed": String(run.label?.label === label), onclick: () => save(run.label?.label === label ? null : label) }, label);
    fill(panel, h("strong", null, "Your verdict "), h("span", { class: "group" }, button("pass"), button("fail")), note, run.label ? h("button", { type: "button", onclick: () => save(run.label.label) }, "Save note") : null, state, h("a", { href: "#/labels", class: "quiet" }, "labels for agentv calibrate"));
  };
  draw();
  return panel;
}
