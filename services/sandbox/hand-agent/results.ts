import type { CollectedOutput } from "./output-collector.ts";
import { listBackgroundProcesses } from "./process-table.ts";
import type { ToolResult } from "./protocol.ts";

const MAX_LISTED = 20;

/** plainResult is the result of a call that produced text and no process output. */
export function plainResult(text: string): ToolResult {
  return {
    ...{ isError: false, text: text === "" ? "(no output)" : text, wasStarted: true, outputBytes: 0 },
    ...{ isTruncated: false, exitCode: null, isTimedOut: false, isCancelled: false, background: [] },
  };
}

/** cancelledResult is the result of a call that was cancelled before its tool began. */
export function cancelledResult(): ToolResult {
  const text = "[cancelled before it began]";
  return { ...plainResult(text), isError: true, isCancelled: true, wasStarted: false };
}

/** What describeRun tells of. */
export type CommandRun = {
  output: CollectedOutput;
  /** Where the raw output of a long one is kept. */
  file: string | undefined;
  end: { exitCode: number | null; isTimedOut: boolean; isCancelled: boolean };
  timeoutMs: number;
  /** Processes of the command that still run. */
  own: ReadonlySet<number>;
};

/** describeRun is the result of a command that ended or was ended. */
export function describeRun({ output, file, end, timeoutMs, own }: CommandRun): ToolResult {
  const { isTimedOut, isCancelled, exitCode } = end;
  const background = listBackgroundProcesses(MAX_LISTED);
  const notes: string[] = [];
  if (file !== undefined) notes.push(`[beginning and end of the raw output are in ${file}]`);
  if (isTimedOut) notes.push(`[timed out after ${timeoutMs} ms; the command and its processes were killed]`);
  if (isCancelled) notes.push("[cancelled; the command and its processes were killed]");
  if (exitCode !== null && exitCode !== 0) notes.push(`[exit code ${exitCode}]`);
  const started = background.filter((job) => own.has(job.pid)).map((job) => `${job.pid} ${job.command}`);
  if (started.length > 0) notes.push(`[still running in the background: ${started.join("; ")}]`);
  const text = [output.text.replace(/\n+$/, ""), ...notes].filter((part) => part !== "").join("\n");
  return {
    ...plainResult(text),
    ...{ isError: exitCode !== 0, exitCode, isTimedOut, isCancelled, background },
    ...{ outputBytes: output.outputBytes, isTruncated: output.isTruncated },
  };
}
