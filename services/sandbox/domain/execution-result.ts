import type { ToolRun } from "./hand-driver.ts";

/** What is known about the effect of a call. */
export type Outcome = "COMPLETED" | "NOT_RUN" | "UNKNOWN" | "CANCELLED";

/** What became of a call; this is what the journal keeps. */
export type ExecutionResult = {
  outcome: Outcome;
  output: string;
  isError: boolean;
  isHandLost: boolean;
  exitCode: number | null;
  isTimedOut: boolean;
  outputBytes: number;
  durationMs: number;
};

const NOTHING = { exitCode: null, isTimedOut: false, outputBytes: 0, durationMs: 0 };

/** finishedResult is the result of a tool that ended or was ended. */
export function finishedResult(run: ToolRun, durationMs: number): ExecutionResult {
  return {
    outcome: outcomeOf(run),
    output: run.text,
    isError: run.isError,
    isHandLost: false,
    exitCode: run.exitCode,
    isTimedOut: run.isTimedOut,
    outputBytes: run.outputBytes,
    durationMs,
  };
}

/** A command that was stopped may have taken part of its effect. */
function outcomeOf(run: ToolRun): Outcome {
  if (!run.wasStarted) return "NOT_RUN";
  return run.isCancelled || run.isTimedOut ? "CANCELLED" : "COMPLETED";
}

/** lostResult is the result of a call whose hand died under it. */
export function lostResult(
  reason: string,
  call: { wasStarted: boolean; isCancelled: boolean; durationMs: number },
): ExecutionResult {
  const { wasStarted, isCancelled, durationMs } = call;
  const effect = wasStarted
    ? `It had run for ${durationMs} ms; it is not known what it did.`
    : "The tool was not run.";
  return {
    ...NOTHING,
    outcome: wasStarted ? (isCancelled ? "CANCELLED" : "UNKNOWN") : "NOT_RUN",
    output: `HAND_LOST: ${reason}. ${effect} Files and processes of this hand are gone; the next call gets a new one.`,
    isError: true,
    isHandLost: true,
    durationMs,
  };
}

/** stoppedResult is the result of a call that was cancelled before the tool began. */
export function stoppedResult(): ExecutionResult {
  const output = "CANCELLED: the call was cancelled before the tool began.";
  return { ...NOTHING, outcome: "NOT_RUN", output, isError: true, isHandLost: false };
}

/** unknownResult is the answer for a call that was started before the service died. */
export function unknownResult(startedAt: number): ExecutionResult {
  return {
    ...NOTHING,
    outcome: "UNKNOWN",
    output:
      `OUTCOME_UNKNOWN: the call was started at ${new Date(startedAt).toISOString()} and its host stopped before a ` +
      "result was recorded. It may have taken effect; it was not run again. The hand is gone.",
    isError: true,
    isHandLost: true,
  };
}

/** droppedResult is the answer for a call that ended so long ago that its result is no longer kept. */
export function droppedResult(startedAt: number): ExecutionResult {
  return {
    ...NOTHING,
    outcome: "UNKNOWN",
    output: `OUTCOME_UNKNOWN: the call was started at ${new Date(startedAt).toISOString()} and ended; its result is no longer kept.`,
    isError: true,
    isHandLost: false,
  };
}
