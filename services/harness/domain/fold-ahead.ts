import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import { fold } from "./fold.ts";
import type { Call, SessionState } from "./session-state.ts";

/** A result of a call, before it has a place in the log. */
export interface NewResult {
  id: string;
  body: NonNullable<Event["body"]>;
}

/**
 * What the state will be once these results stand next in the log. The state itself stays as it is: what a result changes
 * in place is copied first, and other events are not taken.
 */
export function foldAhead(state: SessionState, results: readonly NewResult[]): SessionState {
  const copies = new Map<Call, Call>();
  for (const call of state.openCalls.values()) copies.set(call, { ...call });
  const copyOf = (call: Call): Call => copies.get(call) ?? call;
  const ahead: SessionState = {
    ...state,
    openCalls: new Map([...state.openCalls].map(([id, call]) => [id, copyOf(call)])),
    turns: state.turns.map((turn) =>
      turn.kind === "assistant" && turn.calls.some((call) => copies.has(call))
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
