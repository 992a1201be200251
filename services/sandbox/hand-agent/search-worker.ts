import { lstatSync, opendirSync, readFileSync, statSync } from "node:fs";
import { join, matchesGlob, relative } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import type { SearchAnswer, SearchJob } from "./search-tools.ts";

const MAX_ENTRIES = 200_000;
const MAX_DEPTH = 64;
const MAX_FILE_BYTES = 16 * 1024 * 1024;
const MAX_LINE_CHARS = 2_000;
const SKIPPED = new Set([".git", "node_modules"]);

/** Yields regular files only; links are never followed, so a search stays below its root. */
function* walk(folder: string, depth: number, budget: { left: number }): Generator<string> {
  if (depth > MAX_DEPTH) return;
  let entries: ReturnType<typeof opendirSync>;
  try {
    entries = opendirSync(folder);
  } catch {
    return;
  }
  try {
    for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
      budget.left -= 1;
      if (budget.left < 0) return;
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!SKIPPED.has(entry.name)) yield* walk(path, depth + 1, budget);
      } else if (entry.isFile()) yield path;
    }
  } finally {
    entries.closeSync();
  }
}

function* filesBelow(root: string, budget: { left: number }): Generator<string> {
  if (statSync(root).isFile()) yield root;
  else yield* walk(root, 0, budget);
}

function runGlob(job: Extract<SearchJob, { kind: "glob" }>): string {
  const budget = { left: MAX_ENTRIES };
  const found: { path: string; changed: number }[] = [];
  for (const path of filesBelow(job.root, budget)) {
    if (!matchesGlob(relative(job.root, path) || path, job.pattern)) continue;
    found.push({ path, changed: lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 });
  }
  if (found.length === 0) return budget.left < 0 ? cutShort("no matches") : "no matches";
  found.sort((a, b) => b.changed - a.changed || a.path.localeCompare(b.path));
  const lines = found.slice(0, job.maxResults).map((file) => file.path);
  if (found.length > job.maxResults) lines.push(`[${found.length - job.maxResults} more left out]`);
  return budget.left < 0 ? cutShort(lines.join("\n")) : lines.join("\n");
}

function runGrep(job: Extract<SearchJob, { kind: "grep" }>): string {
  const expression = new RegExp(job.pattern);
  const budget = { left: MAX_ENTRIES };
  const lines: string[] = [];
  let room = job.maxChars;
  for (const path of filesBelow(job.root, budget)) {
    for (const hit of grepFile(path, expression)) {
      room -= hit.length + 1;
      if (room < 0) return [...lines, "[more matches left out]"].join("\n");
      lines.push(hit);
    }
  }
  const text = lines.length === 0 ? "no matches" : lines.join("\n");
  return budget.left < 0 ? cutShort(text) : text;
}

function* grepFile(path: string, expression: RegExp): Generator<string> {
  let bytes: Buffer;
  try {
    if (lstatSync(path).size > MAX_FILE_BYTES) return;
    bytes = readFileSync(path);
  } catch {
    return;
  }
  if (bytes.subarray(0, 8192).includes(0)) return;
  let number = 0;
  for (const line of bytes.toString("utf8").split("\n")) {
    number += 1;
    const text = line.endsWith("\r") ? line.slice(0, -1) : line;
    if (!expression.test(text)) continue;
    yield `${path}:${number}:${text.length > MAX_LINE_CHARS ? `${text.slice(0, MAX_LINE_CHARS)}…` : text}`;
  }
}

function cutShort(text: string): string {
  return `${text}\n[the search stopped after ${MAX_ENTRIES} files and folders; name a narrower path]`;
}

function run(job: SearchJob): SearchAnswer {
  try {
    return { text: job.kind === "glob" ? runGlob(job) : runGrep(job) };
  } catch (error) {
    const reason = error instanceof SyntaxError ? `invalid pattern: ${error.message}` : "the search failed";
    return { error: reason.slice(0, 300) };
  }
}

parentPort?.postMessage(run(workerData as SearchJob));
