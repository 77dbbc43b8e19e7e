// Histograms of the numbers of runs, as the API makes them; a report has only its rows.
const BINS = 20;
/** Ratio of the largest and the smallest number from which the bins are logarithmic. */
const WIDE = 100;
const VERDICTS = ["pass", "fail", "error"];

/** @type {[string, string, (run: any) => number | null | undefined][]} */
const MEASURES = [
  ["score", "", (run) => run.result?.score],
  ["latency_ms", "ms", (run) => run.latency_ms],
  ["cost_usd", "USD", (run) => run.cost_usd],
  ["total_tokens", "tokens", (run) => run.tokens_usage?.total_tokens],
];

/**
 * Return a histogram of each measure that at least one run reports.
 * @param {any[]} runs
 * @param {(run: any) => string} status
 */
export function histograms(runs, status) {
  const measured = runs.filter((run) => VERDICTS.includes(status(run)));
  const charts = [];
  for (const [name, unit, pick] of MEASURES) {
    const known = measured.filter((run) => typeof pick(run) === "number");
    if (!known.length) continue;
    const values = known.map((run) => ({ value: Number(pick(run)), status: status(run) })).sort((a, b) => a.value - b.value);
    const ordered = values.map((each) => each.value);
    const edges = name === "score" ? Array.from({ length: 11 }, (_, at) => at / 10) : binEdges(ordered);
    const times = name === "latency_ms" ? values.filter((each) => each.status !== "error").map((each) => each.value) : [];
    const typical = times.length ? times : ordered;
    charts.push({ name, unit, missing: measured.length - known.length, bins: countBins(values, edges), median: quantile(typical, 0.5), p95: quantile(typical, 0.95), max: ordered[ordered.length - 1] });
  }
  return charts;
}

/**
 * Return a quantile as the API does, which rounds a half to the even position.
 * @param {number[]} ordered
 * @param {number} share
 */
function quantile(ordered, share) {
  const place = share * (ordered.length - 1);
  const below = Math.floor(place);
  const isUp = place - below > 0.5 || (place - below === 0.5 && below % 2 === 1);
  return ordered[isUp ? below + 1 : below];
}

/**
 * Return the edges of the bins: round numbers, or powers where the numbers spread widely.
 * @param {number[]} ordered
 */
function binEdges(ordered) {
  const high = ordered[ordered.length - 1];
  if (ordered[0] > 0 && high / ordered[0] >= WIDE) {
    const first = Math.floor(Math.log10(ordered[0]) * 4);
    const last = Math.max(Math.ceil(Math.log10(high) * 4), first + 1);
    return Array.from({ length: last - first + 1 }, (_, at) => 10 ** ((first + at) / 4));
  }
  const low = Math.min(ordered[0], 0);
  const step = high > low ? roundUp((high - low) / BINS) : 1;
  return Array.from({ length: Math.floor((high - low) / step) + 2 }, (_, at) => low + step * at);
}

/**
 * Return the next 1, 2 or 5 times a power of ten.
 * @param {number} step
 */
function roundUp(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return ([1, 2, 5, 10].find((factor) => factor * power >= step) ?? 10) * power;
}

/**
 * Count values between edges; the first and the last bin take what lies outside.
 * @param {{value: number, status: string}[]} values sorted
 * @param {number[]} edges
 */
function countBins(values, edges) {
  /** @type {any[]} */
  const bins = edges.slice(1).map((to, at) => ({ from: edges[at], to, pass: 0, fail: 0, error: 0 }));
  let at = 0;
  for (const { value, status } of values) {
    while (at < bins.length - 1 && value >= bins[at].to) at += 1;
    bins[at][status] += 1;
  }
  return bins;
}
