// Runs a JavaScript assertion of promptfoo as a check of agentv: it reads the run on stdin, and prints its verdict.
// With a file as its argument, it calls the function that the file exports; else it runs `config.code`, or checks
// the output after `config.transform` as `config.assert` says.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const run = JSON.parse(readFileSync(0, 'utf8'));
const settings = run.config ?? {};
const scriptFile = process.argv[2];

function promptText() {
  const messages = run.case.input_messages ?? [];
  return messages.length === 1 && typeof messages[0].content === 'string'
    ? messages[0].content
    : JSON.stringify(messages);
}

function firstOutput() {
  const text = run.candidate ?? '';
  if (settings.json_output) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return text;
}

const vars = run.case.vars ?? {};
const usage = run.response?.tokens_usage ?? null;
const context = {
  prompt: promptText(),
  vars,
  test: { vars, metadata: run.case.metadata ?? {}, description: run.case.description },
  config: settings.config,
  metadata: run.response?.metadata ?? undefined,
  providerResponse: {
    output: run.candidate,
    cost: run.response?.cost_usd ?? undefined,
    latencyMs: run.response?.latency_ms ?? undefined,
    metadata: run.response?.metadata ?? undefined,
    tokenUsage: usage && { prompt: usage.input_tokens, completion: usage.output_tokens, total: usage.total_tokens },
  },
};

// A statement such as `const x = ...; x > 1` gets its `return` before the last expression.
function body(code) {
  if (code.includes('\n')) return code;
  const line = code.trim().replace(/;+\s*$/, '');
  if (!/^(const|let|var)\s/.test(line)) return `return ${line}`;
  let quote = '';
  let last = -1;
  for (let at = 0; at < line.length; at += 1) {
    const letter = line[at];
    if (letter === '\\') at += 1;
    else if (quote) quote = letter === quote ? '' : quote;
    else if (letter === "'" || letter === '"' || letter === '`') quote = letter;
    else if (letter === ';') last = at;
  }
  return last < 0 ? line : `${line.slice(0, last + 1)} return ${line.slice(last + 1)}`;
}

function shim() {
  const require = createRequire(pathToFileURL(`${process.cwd()}/`));
  return Object.assign(Object.create(process), { mainModule: { require } });
}

async function evaluateCode(code, output) {
  return new Function('output', 'context', 'process', body(code))(output, context, shim());
}

async function transformed(output) {
  let value = output;
  for (const code of settings.transform ?? []) {
    const source = code.includes('\n') ? code : `return ${code}`;
    const result = await new Function('output', 'context', 'process', source)(value, context, shim());
    if (result === undefined || result === null) throw new Error(`the transform gave nothing: ${code}`);
    value = result;
  }
  return value;
}

async function callFile(output) {
  const loaded = await import(pathToFileURL(scriptFile));
  const named = settings.function;
  const inner = loaded.default;
  const found = named
    ? loaded[named] ?? inner?.[named]
    : typeof inner === 'function' ? inner : inner?.default ?? loaded.default;
  if (typeof found !== 'function') throw new Error(`${scriptFile} exports no function ${named ?? 'by default'}`);
  return found(output, context);
}

const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

function distance(left, right) {
  let row = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (let at = 1; at <= left.length; at += 1) {
    const next = [at];
    for (let to = 1; to <= right.length; to += 1) {
      next[to] = Math.min(row[to] + 1, next[to - 1] + 1, row[to - 1] + (left[at - 1] === right[to - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[right.length];
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

function isJson(answer) {
  try {
    JSON.parse(answer);
    return true;
  } catch {
    return false;
  }
}

function wordsFit(answer, value) {
  const count = answer.trim().split(/\s+/).filter(Boolean).length;
  if (typeof value !== 'object') return count === Number(value);
  return (value.min === undefined || count >= value.min) && (value.max === undefined || count <= value.max);
}

function check(output) {
  const answer = text(output);
  const lower = answer.toLowerCase();
  const { value } = settings;
  const values = Array.isArray(value) ? value.map(String) : String(value).split(',').map((part) => part.trim());
  switch (settings.assert) {
    case 'contains': return answer.includes(String(value));
    case 'icontains': return lower.includes(String(value).toLowerCase());
    case 'contains-all': return values.every((each) => answer.includes(each));
    case 'icontains-all': return values.every((each) => lower.includes(each.toLowerCase()));
    case 'contains-any': return values.some((each) => answer.includes(each));
    case 'icontains-any': return values.some((each) => lower.includes(each.toLowerCase()));
    case 'starts-with': return answer.startsWith(String(value));
    case 'regex': return new RegExp(value).test(answer);
    case 'is-json': {
      if (value !== undefined) throw new Error('a schema after a transform is not checked here');
      return isJson(answer);
    }
    case 'word-count': return wordsFit(answer, value);
    case 'levenshtein': return distance(answer, String(value)) <= (settings.threshold ?? 5);
    case 'equals':
      return typeof value === 'object'
        ? isJson(answer) && JSON.stringify(sorted(JSON.parse(answer))) === JSON.stringify(sorted(value))
        : answer === String(value);
    default: throw new Error(`unknown assertion ${settings.assert}`);
  }
}

async function result() {
  const output = await transformed(firstOutput());
  if (settings.assert) return check(output);
  return scriptFile ? callFile(output) : evaluateCode(settings.code, output);
}

function verdict(value) {
  const inverse = settings.inverse === true;
  if (typeof value === 'boolean') return { pass: value !== inverse, score: value !== inverse ? 1 : 0 };
  if (typeof value === 'number') {
    const held = settings.threshold === undefined ? value > 0 : value >= settings.threshold;
    return { pass: held !== inverse, score: value };
  }
  if (typeof value?.pass === 'boolean' && typeof value.score === 'number' && typeof value.reason === 'string') {
    return { pass: value.pass !== inverse, score: value.score, reason: inverse ? undefined : value.reason };
  }
  throw new Error(`the assertion must return a boolean, a number or {pass, score, reason}, not ${typeof value}`);
}

let found;
try {
  found = verdict(await result());
} catch (error) {
  // promptfoo counts an assertion that throws as failed, also behind `not-`.
  found = { pass: false, score: 0, reason: `it threw ${error.message}` };
}
// Without a threshold of the case, the verdict alone counts; with one, the score does.
const score = settings.graded ? Math.min(1, Math.max(0, found.score)) : found.pass ? 1 : 0;
const sentence = found.reason ?? settings.code ?? settings.assert ?? 'the function of the file';
const key = found.pass ? 'hits' : 'misses';
process.stdout.write(JSON.stringify({ score, [key]: [String(sentence)], details: { value: found.score } }));
