// Numbers and times as people read them; what is not known is a dash, never a zero.

export const NONE = "–";

/** @param {number | null | undefined} share */
export function percent(share) {
  if (share === null || share === undefined) return NONE;
  const value = share * 100;
  if (value > 0 && value < 1) return "< 1 %";
  if (value > 99 && value < 100) return "> 99 %";
  return `${Math.round(value)} %`;
}

/** @param {[number, number] | null | undefined} interval */
export function intervalText(interval) {
  return interval ? `${Math.round(interval[0] * 100)}–${Math.round(interval[1] * 100)} %` : "";
}

/** @param {number | null | undefined} milliseconds */
export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return NONE;
  if (milliseconds === 0) return "0 ms";
  if (milliseconds < 1) return `${milliseconds.toFixed(2)} ms`;
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 59_950) return `${(milliseconds / 1000).toFixed(milliseconds < 9_995 ? 2 : 1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${count(Math.floor(seconds / 3600))} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** @param {number | null | undefined} value */
export function count(value) {
  return value === null || value === undefined ? NONE : value.toLocaleString("en-US");
}

/** @param {number | null | undefined} dollars */
export function cost(dollars) {
  if (dollars === null || dollars === undefined) return NONE;
  if (dollars === 0) return "$0";
  if (dollars < 0.01) return `$${dollars.toPrecision(2)}`;
  const digits = dollars < 1 ? 3 : 2;
  return `$${dollars.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}

/** @param {number | null | undefined} value */
export function score(value) {
  return value === null || value === undefined ? NONE : value.toFixed(2);
}

/** @param {string | null | undefined} timestamp */
export function time(timestamp) {
  if (!timestamp) return NONE;
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return timestamp.slice(0, 40);
  const pad = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

/**
 * @param {number} number
 * @param {string} noun
 */
export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/**
 * Say how many tool calls there were; `null` if the reply says nothing about calls.
 * @param {number | null | undefined} calls
 * @param {boolean} [isLeast] there may be more
 */
export function callCount(calls, isLeast = false) {
  if (calls === null || calls === undefined) return "unknown";
  return `${isLeast ? "≥ " : ""}${count(calls)}`;
}

/** @param {any} usage */
export function tokens(usage) {
  if (!usage) return null;
  if (usage.total_tokens !== null && usage.total_tokens !== undefined) return usage.total_tokens;
  const known = [usage.input_tokens, usage.output_tokens].filter((value) => typeof value === "number");
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
}

/**
 * A number of a measure with its unit.
 * @param {string} name
 * @param {number | null | undefined} value
 */
export function measure(name, value) {
  if (value === null || value === undefined) return NONE;
  if (name === "latency_ms" || name.startsWith("latency")) return duration(value);
  if (name === "cost_usd") return cost(value);
  if (name === "score") return score(value);
  if (name === "pass_rate") return percent(value);
  return count(Math.round(value * 10) / 10);
}

/**
 * The name of an execution: what it evaluated; a folder that was named as `.` by its own name.
 * @param {any} command
 */
export function executionName(command) {
  if (command?.rescored) return `rescore ${command.rescored}`;
  const folder = String(command?.folder || "").split(/[\\/]/).filter(Boolean).pop();
  return (command?.paths || []).map((/** @type {string} */ path) => (path === "." && folder) || path).join(" ");
}
