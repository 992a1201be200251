import type { Execution } from "../../gen/ganglion/sandbox/v1/sandbox_service.ts";
import { ToolOutcome } from "../../gen/ganglion/types/v1/event.ts";
import type { Outcome } from "../domain/execution-result.ts";
import type { ExecutionView } from "../domain/executions.ts";

const OUTCOMES: Record<Outcome, ToolOutcome> = {
  COMPLETED: ToolOutcome.TOOL_OUTCOME_COMPLETED,
  NOT_RUN: ToolOutcome.TOOL_OUTCOME_NOT_RUN,
  UNKNOWN: ToolOutcome.TOOL_OUTCOME_UNKNOWN,
  CANCELLED: ToolOutcome.TOOL_OUTCOME_CANCELLED,
};

/** mapExecution is a call that ended, as callers see it. */
export function mapExecution({ key, handId, result, isReplayed }: ExecutionView): Execution {
  return {
    key,
    handId,
    outcome: OUTCOMES[result.outcome],
    output: result.output,
    isError: result.isError,
    isHandLost: result.isHandLost,
    exitCode: result.exitCode ?? undefined,
    isTimedOut: result.isTimedOut,
    outputBytes: BigInt(result.outputBytes),
    duration: {
      seconds: BigInt(Math.floor(result.durationMs / 1000)),
      nanos: (result.durationMs % 1000) * 1_000_000,
    },
    isReplayed,
  };
}

/** mapRunning is a call that still runs. */
export function mapRunning({ key, handId }: { key: string; handId: string }): Execution {
  return {
    ...{ key, handId, outcome: ToolOutcome.TOOL_OUTCOME_UNSPECIFIED, output: "", isError: false },
    ...{ isHandLost: false, exitCode: undefined, isTimedOut: false, outputBytes: 0n },
    ...{ duration: undefined, isReplayed: false },
  };
}
