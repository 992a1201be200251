import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import type { NewEvent } from "../ports/event-log.ts";
import { fold } from "./fold.ts";
import { isKept } from "./kept-turns.ts";
import type { Call, SessionState } from "./session-state.ts";

/**
 * What the state will be once these results of calls stand next in the log. The state itself stays as it is: what a result
 * changes in place is copied first, and other events are not taken.
 */
export function foldAhead(state: SessionState, results: readonly NewEvent[]): SessionState {
  const copies = new Map([...state.openCalls.values()].map((call) => [call, { ...call }]));
  const copyOf = (call: Call): Call => copies.get(call) ?? call;
  const ahead: SessionState = {
    ...state,
    openCalls: new Map([...state.openCalls].map(([id, call]) => [id, copyOf(call)])),
    turns: state.turns.map((turn) =>
      !isKept(turn) && turn.kind === "assistant" && turn.calls.some((call) => copies.has(call))
        ? { ...turn, calls: turn.calls.map(copyOf) }
        : turn,
    ),
  };
  for (const { id, body } of results) {
    if (body.$case !== "agentToolResult" && body.$case !== "agentMcpToolResult")
      throw new Error(`${body.$case} is no result`);
    fold(ahead, { ...BLANK, id, body, position: ahead.position + 1n });
  }
  return ahead;
}

const BLANK: Omit<Event, "id" | "body" | "position"> = {
  createTime: undefined,
  type: "",
  actor: undefined,
  threadId: "",
  epoch: 0n,
  traceparent: "",
  mayIgnore: false,
};
