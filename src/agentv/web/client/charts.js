// Charts as SVG, each with a text that says the same.
import { h, svg } from "./dom.js";
import { count, intervalText, measure, percent, plural } from "./format.js";

/** @type {Record<string, string>} */
const CHART_TITLES = { score: "Score", latency_ms: "Latency", cost_usd: "Cost", total_tokens: "Tokens" };

/**
 * Return a histogram with stacked verdicts.
 * @param {any} chart
 */
export function histogram(chart) {
  const width = 260;
  const height = 84;
  const bins = chart.bins;
  const highest = Math.max(1, ...bins.map((/** @type {any} */ bin) => bin.pass + bin.fail + bin.error));
  const runs = bins.reduce((/** @type {number} */ sum, /** @type {any} */ bin) => sum + bin.pass + bin.fail + bin.error, 0);
  const step = width / bins.length;
  const title = CHART_TITLES[chart.name] || chart.name;
  const show = (/** @type {number} */ value) => measure(chart.name, value);
  const missing = chart.missing ? `; ${plural(chart.missing, "run")} did not report it` : "";
  const text = `${title} of ${plural(runs, "run")}: median ${show(chart.median)}, 95 % at most ${show(chart.p95)}, largest ${show(chart.max)}${missing}`;
  const bars = bins.map((/** @type {any} */ bin, /** @type {number} */ at) => {
    let top = height;
    const parts = ["pass", "fail", "error"].map((verdict) => {
      const size = (bin[verdict] / highest) * (height - 4);
      top -= size;
      return size > 0 && svg("rect", { x: at * step + 0.5, y: top, width: Math.max(1, step - 1), height: size, class: `bar-${verdict}` });
    });
    const label = `${show(bin.from)} to ${show(bin.to)}: ${count(bin.pass)} passed, ${count(bin.fail)} failed, ${count(bin.error)} errors`;
    const area = svg("rect", { x: at * step, y: 0, width: step, height, class: "bar-area" });
    return svg("g", null, svg("title", null, label), area, parts);
  });
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": text, preserveAspectRatio: "none" }, bars, svg("line", { x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5, class: "axis" }));
  const low = show(bins[0].from);
  const high = show(bins[bins.length - 1].to);
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", null, h("strong", null, title), " ", h("span", { class: "quiet" }, `median ${show(chart.median)} · p95 ${show(chart.p95)}`)),
    picture,
    h("div", { class: "chart-ends quiet", "aria-hidden": "true" }, h("span", null, low), h("span", null, high)),
    chart.missing ? h("div", { class: "quiet small" }, `not reported by ${plural(chart.missing, "run")}`) : null,
  );
}

/**
 * Return a line of pass rates, oldest first.
 * @param {string} name
 * @param {{rate: number | null, label: string}[]} points
 */
export function trend(name, points) {
  const width = 180;
  const height = 36;
  const known = points.filter((point) => point.rate !== null);
  const x = (/** @type {number} */ at) => (points.length > 1 ? 6 + (at / (points.length - 1)) * (width - 12) : width / 2);
  const y = (/** @type {number} */ rate) => height - 6 - rate * (height - 12);
  const places = points.map((point, at) => ({ ...point, x: x(at), y: point.rate === null ? null : y(point.rate) }));
  const drawn = places.filter((place) => place.y !== null);
  const line = drawn.map((place, at) => `${at ? "L" : "M"}${place.x.toFixed(1)} ${Number(place.y).toFixed(1)}`).join("");
  const last = known.length ? known[known.length - 1] : null;
  const text = `Pass rate of ${name} in ${plural(points.length, "execution")}, oldest first: ${points.map((point) => percent(point.rate)).join(", ")}`;
  return h(
    "div",
    { class: "trend" },
    h("div", null, h("strong", null, name), h("span", { class: "trend-now" }, last ? percent(last.rate) : "–")),
    svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": text },
      svg("line", { x1: 0, x2: width, y1: y(1), y2: y(1), class: "grid" }),
      svg("line", { x1: 0, x2: width, y1: y(0), y2: y(0), class: "grid" }),
      svg("path", { d: line, class: "trend-line" }),
      drawn.map((place) => svg("circle", { cx: place.x, cy: place.y, r: 2.6, class: place.rate === 1 ? "dot-pass" : "dot-fail" }, svg("title", null, place.label))),
    ),
  );
}

/**
 * Return a bar with a pass rate and its interval.
 * @param {any} counts
 */
export function rateBar(counts) {
  const { pass_rate: rate, pass_rate_interval: interval, passed, failed, errors } = counts;
  const total = Math.max(1, passed + failed + errors);
  // The interval is one of the runs that were measured, as the pass rate is: it stands around the end of their part.
  const measured = ((passed + failed) / total) * 100;
  const text = rate === null ? "nothing measured" : `${percent(rate)} passed, 95 % interval ${intervalText(interval)}; ${count(passed)} passed, ${count(failed)} failed, ${count(errors)} errors`;
  const part = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ size) => svg("rect", { x: (from / total) * 100, y: 3, width: (size / total) * 100, height: 6, class: `bar-${name}` });
  return svg(
    "svg",
    { viewBox: "0 0 100 12", class: "rate", role: "img", "aria-label": text, preserveAspectRatio: "none" },
    svg("title", null, text),
    svg("rect", { x: 0, y: 3, width: 100, height: 6, class: "rate-back" }),
    part("pass", 0, passed),
    part("fail", passed, failed),
    part("error", passed + failed, errors),
    interval ? svg("line", { x1: interval[0] * measured, x2: interval[1] * measured, y1: 11, y2: 11, class: "rate-interval" }) : null,
  );
}

/**
 * Return the calls of a conversation over time.
 * @param {any[]} calls
 * @param {(call: any) => string} link
 */
export function timeline(calls, link) {
  const starts = calls.map((call) => Date.parse(call.timestamp || ""));
  const isTimed = calls.length > 0 && starts.every((start) => !Number.isNaN(start));
  let at = 0;
  const spans = calls.map((call, number) => {
    const length = typeof call.duration_ms === "number" && call.duration_ms > 0 ? call.duration_ms : 0;
    const from = isTimed ? starts[number] - starts[0] : at;
    at += length;
    return { call, from: Math.max(0, from), length };
  });
  const end = Math.max(1, ...spans.map((span) => span.from + span.length));
  const rows = spans.map(({ call, from, length }) => {
    const bar = svg("rect", { x: (from / end) * 100, y: 5, width: Math.max(0.8, (length / end) * 100), height: 8, rx: 1, class: call.status === "error" || call.error ? "span-error" : length ? "span" : "span-unknown" });
    return h(
      "li",
      null,
      h("a", { href: link(call), class: "mono" }, `${call.number}: ${call.tool || "(no name)"}`),
      svg("svg", { viewBox: "0 0 100 18", preserveAspectRatio: "none", "aria-hidden": "true" }, bar),
      h("span", { class: "quiet number" }, length ? measure("latency_ms", length) : "no duration"),
    );
  });
  const note = isTimed ? "placed by their time stamps" : "one after the other: the agent sent no time stamps";
  return h("div", null, h("p", { class: "quiet small" }, `Calls ${note}.`), h("ol", { class: "timeline" }, rows));
}
