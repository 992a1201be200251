import { isJsonObject } from "../../common/json/json-span.ts";
import { OUTCOME, PERMISSION } from "./proto-values.ts";
import type { Call, CallResult } from "./session-state.ts";
import { textBlock } from "./text-block.ts";

/** A call and the result that closes it without running it. */
export interface Settlement {
  call: Call;
  result: CallResult;
}

/** Ways an answer ends after which every call in it is whole. Others may have cut one short (B025, M20). */
const WHOLE = new Set(["tool_use", "end_turn", "stop_sequence", "pause_turn"]);

/** The result for a call that must never run, with the reason told to the model; undefined = it may run. */
export function settle(call: Call, stopReason: string): Settlement | undefined {
  const reason = whyNotRun(call, stopReason);
  if (reason !== undefined) return { call, result: notRun(reason) };
  return call.isForeign ? { call, result: FOREIGN } : undefined;
}

const FOREIGN: CallResult = {
  content: [
    textBlock(
      "The session was forked before this call had a result, so it is not known whether it took effect. " +
        "It was not run again. The files of the session it was forked from are not here.",
    ),
  ],
  isError: true,
  outcome: OUTCOME.UNKNOWN,
};

/** An error result of a call that certainly had no effect. */
export function notRun(message: string): CallResult {
  return { content: [textBlock(message)], isError: true, outcome: OUTCOME.NOT_RUN };
}

function whyNotRun(call: Call, stopReason: string): string | undefined {
  if (stopReason === "max_tokens") {
    return "The answer was cut at the token limit, so this call was not run. Call again with a smaller input.";
  }
  if (!WHOLE.has(stopReason)) return "The answer did not end as expected, so this call was not run.";
  if (!isJsonObject(call.inputJson)) return "The call's input is not a JSON object, so it was not run.";
  if (call.kind === "custom" || call.permission === PERMISSION.ALLOW) return undefined;
  if (call.permission === PERMISSION.ASK) {
    if (!call.confirmation || call.confirmation.isAllowed) return undefined;
    const words = call.confirmation.denyMessage;
    return words === "" ? "The user did not allow this call." : `The user did not allow this call: ${words}`;
  }
  if (call.policy === "unknown_tool") return `There is no tool named ${JSON.stringify(call.name)}.`;
  if (call.policy === "auto")
    return "This call was judged before it ran and denied. Do it another way, or ask the user.";
  return "This call is not permitted.";
}
