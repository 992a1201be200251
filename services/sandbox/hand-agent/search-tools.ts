import { Worker } from "node:worker_threads";
import { confinePath, type Roots } from "./confine-path.ts";
import { ToolError } from "./tool-error.ts";

/** What a search is asked to do; the worker does it. */
export type SearchJob =
  | { kind: "glob"; pattern: string; root: string; maxResults: number }
  | { kind: "grep"; pattern: string; root: string; maxChars: number };

/** What the worker answers. */
export type SearchAnswer = { text: string } | { error: string };

const GLOB_RESULTS = 200;
const GREP_CHARS = 100 * 1024;
const SEARCH_TIMEOUT_MS = 20_000;
const WORKER = new URL(`./search-worker.${import.meta.url.split(".").at(-1)}`, import.meta.url);

/** globTool lists files that match a pattern, newest first. */
export async function globTool(
  input: { pattern: string; path?: string },
  roots: Roots,
  signal: AbortSignal,
): Promise<string> {
  if (input.pattern === "") throw new ToolError("glob: pattern is empty");
  if (input.pattern.startsWith("/") || input.pattern.split(/[/{},]/).includes("..")) {
    throw new ToolError('glob: the pattern must be relative and without ".."; name a folder with path');
  }
  const root = await confinePath(roots, input.path ?? roots[0]);
  return search({ kind: "glob", pattern: input.pattern, root, maxResults: GLOB_RESULTS }, signal);
}

/** grepTool lists the lines that match a regular expression as path:line:text. */
export async function grepTool(
  input: { pattern: string; path?: string },
  roots: Roots,
  signal: AbortSignal,
): Promise<string> {
  if (input.pattern === "") throw new ToolError("grep: pattern is empty");
  const root = await confinePath(roots, input.path ?? roots[0]);
  return search({ kind: "grep", pattern: input.pattern, root, maxChars: GREP_CHARS }, signal);
}

/** Patterns come from the model and may backtrack for ever: they run in a thread that can be stopped. */
function search(job: SearchJob, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(WORKER, {
      workerData: job,
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: 128, stackSizeMb: 8 },
    });
    const stop = (error: ToolError) => {
      finish();
      void worker.terminate();
      reject(error);
    };
    const onAbort = () => stop(new ToolError(`${job.kind}: cancelled`));
    const timer = setTimeout(
      () =>
        stop(new ToolError(`${job.kind}: no answer within ${SEARCH_TIMEOUT_MS / 1000} s; narrow the search`)),
      SEARCH_TIMEOUT_MS,
    );
    const finish = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    worker.once("message", (answer: SearchAnswer) => {
      finish();
      if ("text" in answer) resolve(answer.text);
      else reject(new ToolError(`${job.kind}: ${answer.error}`));
    });
    worker.once("error", () => stop(new ToolError(`${job.kind}: the search failed`)));
    worker.once("exit", () => stop(new ToolError(`${job.kind}: the search ended without an answer`)));
  });
}
