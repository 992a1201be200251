import type { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import { CONFIRM_ALLOW, OUTCOME, PERMISSION } from "../../../../services/harness/domain/proto-values.ts";
import { type Effects, scriptOf } from "../parts/effects.ts";
import { REPEATABLE } from "../parts/mcp-upstream.ts";

/** A call of the log and everything that the log says about it. */
interface KnownCall {
  id: string;
  isCustom: boolean;
  isRepeatable: boolean;
  isAllowed: boolean;
  nonce: string | undefined;
  /** Outcomes of the brain's results. */
  outcomes: number[];
  /** Results of the client; custom calls only. */
  clientResults: number;
  /** True when the brain closed it after the client had answered. */
  isClosedTwice: boolean;
}

/** Law L4: one result per call, and what the result says is what happened. */
export function checkCalls(events: readonly Event[], effects: Effects, isCalm: boolean): string[] {
  return [...collect(events).values()].flatMap((call) =>
    judge(call, call.nonce === undefined ? 0 : effects.of(call.nonce), isCalm).map(
      (fault) => `${call.id}: ${fault}`,
    ),
  );
}

function judge(call: KnownCall, count: number, isCalm: boolean): string[] {
  const faults: string[] = [];
  const results = call.isCustom
    ? Math.min(1, call.outcomes.length + call.clientResults)
    : call.outcomes.length;
  if (results !== 1 || call.outcomes.length > 1) faults.push(`has ${call.outcomes.length} results`);
  if (call.isClosedTwice) faults.push("was closed after the client had answered");
  if (call.isCustom) return faults;
  const [outcome] = call.outcomes;
  if (count > 1 && !call.isRepeatable) faults.push(`took effect ${count} times`);
  if (count > 0 && !call.isAllowed) faults.push("took effect and was not allowed");
  if (outcome === OUTCOME.NOT_RUN && count > 0) faults.push("took effect and is said not to have run");
  if (outcome === OUTCOME.COMPLETED && count === 0 && call.nonce !== undefined)
    faults.push("is said to have run and took no effect");
  const isVague = outcome === OUTCOME.UNKNOWN || outcome === OUTCOME.CANCELLED;
  if (isVague && isCalm) faults.push("has no certain outcome although nothing went wrong");
  return faults;
}

function collect(events: readonly Event[]): Map<string, KnownCall> {
  const calls = new Map<string, KnownCall>();
  for (const { id, body } of events) {
    switch (body?.$case) {
      case "agentToolUse":
      case "agentMcpToolUse":
      case "agentCustomToolUse": {
        const isCustom = body.$case === "agentCustomToolUse";
        calls.set(id, {
          id,
          isCustom,
          isRepeatable: body.value.name === REPEATABLE,
          isAllowed: body.$case !== "agentCustomToolUse" && body.value.permission === PERMISSION.ALLOW,
          nonce: scriptOf(body.value.inputJson)?.nonce,
          ...{ outcomes: [], clientResults: 0, isClosedTwice: false },
        });
        break;
      }
      case "userToolConfirmation": {
        const call = calls.get(body.value.toolUseId);
        if (call && call.outcomes.length === 0 && body.value.result === CONFIRM_ALLOW) call.isAllowed = true;
        break;
      }
      case "userCustomToolResult": {
        const call = calls.get(body.value.customToolUseId);
        if (call) call.clientResults += 1;
        break;
      }
      case "agentToolResult":
        close(calls.get(body.value.toolUseId), body.value.outcome);
        break;
      case "agentMcpToolResult":
        close(calls.get(body.value.mcpToolUseId), body.value.outcome);
    }
  }
  return calls;
}

function close(call: KnownCall | undefined, outcome: number): void {
  if (!call) return;
  call.outcomes.push(outcome);
  if (call.clientResults > 0) call.isClosedTwice = true;
}
