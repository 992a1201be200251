import type { Action } from "../../../../services/harness/domain/decide.ts";
import type { World } from "./brain.ts";
import { EXECUTED } from "./scripted-parts.ts";
import {
  allow,
  asked,
  customUse,
  end,
  failedEnd,
  hand,
  interrupt,
  lease,
  mcpUse,
  resolved,
  result,
  running,
  said,
  span,
  use,
  type Written,
  waits,
} from "./written-events.ts";

/** What the journal of a hand says of a call that has ended. */
export const known = { ...EXECUTED, output: "from the journal" };
const mcpKnown = {
  outcome: 1 as const,
  content: [],
  structuredContentJson: new Uint8Array(),
  isError: false,
  proxyRequestId: "req_9",
  durationMs: 1n,
};
const mcpLost = { ...mcpKnown, outcome: 3 as const, isError: true };

/** One state that a crash can leave, and what the next brain makes of it. */
export interface Row {
  /** What a crash left in the log after the first message. */
  left: Written[];
  /** What the parts know. */
  knows?: (world: World) => void;
  /** What the next brain does first. */
  first: Action["type"];
  /** Outcome of each result in the whole log, in order: 1 completed, 2 not run, 3 unknown, 4 cancelled. */
  outcomes?: number[];
  /** Commands and tools that are run by the next brain. */
  runs?: string[];
  /** Model requests that the next brain makes. */
  requests?: number;
  /** Why the session is idle at the end: 1 end_turn, 2 requires_action, 3 retries_exhausted. */
  stop?: number;
}

/** A call of a tool of the hand, of which nothing is known. */
export const call = [resolved, lease, running, span("s1"), use("c1", "s1", 0), end("s1")];
const three = [
  ...[resolved, lease, running, span("s1"), use("c1", "s1", 0), use("c2", "s1", 1), use("c3", "s1", 2)],
  ...[end("s1"), hand],
];
const mcpCall = [resolved, lease, running, span("s1"), mcpUse("c1", "s1"), end("s1")];
const question = [resolved, lease, running, span("s1"), use("c1", "s1", 0, asked), end("s1")];
const custom = [resolved, lease, running, span("s1"), customUse("c1", "s1"), end("s1")];

/** Each state by its name. */
export const CRASH_STATES: Record<string, Row> = {
  "nothing but the message": { left: [resolved], first: "call_model" },
  "a lease and nothing else": { left: [resolved, lease], first: "call_model" },
  "tools that were not resolved yet": { left: [lease, running], first: "resolve_tools" },
  "a status without a request": { left: [resolved, lease, running], first: "call_model" },

  "an open request": { left: [resolved, lease, running, span("s1")], first: "end_span" },
  "an open request with blocks and no end": {
    left: [resolved, lease, running, span("s1"), use("c1", "s1", 0)],
    first: "end_span",
    // A block counts only once its request ended well: nothing of it was ever a call.
    outcomes: [],
  },
  "an open request after a failed one": {
    left: [resolved, lease, running, span("s1"), failedEnd("s1", "MODEL_OVERLOADED"), span("s2", "2", 2)],
    first: "end_span",
  },
  "a failed request and the wait after it": {
    left: [
      ...[resolved, lease, running, span("s1"), failedEnd("s1", "MODEL_OVERLOADED")],
      { type: "session.status_rescheduled", body: {} },
    ],
    first: "call_model",
  },
  "an answer without its idle": {
    left: [resolved, lease, running, span("s1"), end("s1", "end_turn")],
    first: "go_idle",
    requests: 0,
  },

  "a call that was never begun": { left: call, first: "run_calls", outcomes: [1], runs: ["c1"] },
  "a call that still runs": {
    left: [...call, hand],
    knows: (world) => {
      let looks = 0;
      world.hands.lookUp = async () => (++looks < 3 ? { kind: "running" } : { kind: "known", value: known });
    },
    first: "run_calls",
    outcomes: [1],
  },
  "a call that has ended [B152]": {
    left: [...call, hand],
    knows: (world) => void world.hands.journal.set("c1", { kind: "known", value: known }),
    first: "run_calls",
    outcomes: [1],
  },
  "a call whose outcome the host does not know": {
    left: [...call, hand],
    knows: (world) =>
      void world.hands.journal.set("c1", {
        kind: "known",
        value: { ...known, outcome: 3, isError: true, isHandLost: true },
      }),
    first: "run_calls",
    outcomes: [3],
  },
  "a call whose host is gone": {
    left: [...call, hand],
    knows: (world) => {
      world.hands.isReachable = false;
    },
    first: "run_calls",
    outcomes: [3],
  },

  "a batch of which nothing was begun": {
    left: three,
    first: "run_calls",
    outcomes: [1, 1, 1],
    runs: ["c1", "c2", "c3"],
  },
  "a batch with two of three results [B002]": {
    left: [...three, result("c1"), result("c3")],
    first: "run_calls",
    outcomes: [1, 1, 1],
    runs: ["c2"],
  },
  "a batch of which one ended, one is lost and one was never begun": {
    left: three,
    knows: (world) => {
      world.hands.journal.set("c1", { kind: "known", value: known });
      world.hands.journal.set("c2", { kind: "known", value: { ...known, outcome: 3, isError: true } });
    },
    first: "run_calls",
    outcomes: [1, 3, 1],
    runs: ["c3"],
  },
  "a batch with all results and no request after it": {
    left: [...three, result("c1"), result("c2"), result("c3")],
    first: "call_model",
    outcomes: [1, 1, 1],
  },

  "an MCP call that was never dispatched": {
    left: mcpCall,
    first: "run_calls",
    outcomes: [1],
    runs: ["find"],
  },
  "an MCP call that has ended": {
    left: mcpCall,
    knows: (world) => void world.mcp.journal.set("c1", { kind: "known", value: mcpKnown }),
    first: "run_calls",
    outcomes: [1],
  },
  "an MCP call that was lost": {
    left: mcpCall,
    knows: (world) => void world.mcp.journal.set("c1", { kind: "known", value: mcpLost }),
    first: "run_calls",
    outcomes: [3],
  },
  "an MCP call that was lost and may be repeated": {
    left: mcpCall,
    knows: (world) => void world.mcp.journal.set("c1", { kind: "repeatable", value: mcpLost }),
    first: "run_calls",
    outcomes: [1],
    runs: ["find"],
  },

  "an interrupt before anything was asked of a host": {
    left: [...call, interrupt],
    first: "interrupt",
    outcomes: [2],
    requests: 0,
  },
  "an interrupt of a call that has ended": {
    left: [...call, hand, interrupt],
    knows: (world) => void world.hands.journal.set("c1", { kind: "known", value: known }),
    first: "interrupt",
    outcomes: [1],
    requests: 0,
  },
  "an interrupt of a call whose host is gone": {
    left: [...call, hand, interrupt],
    knows: (world) => {
      world.hands.isReachable = false;
    },
    first: "interrupt",
    outcomes: [3],
    requests: 0,
  },
  "an interrupt of an open request": {
    left: [resolved, lease, running, span("s1"), interrupt],
    first: "end_span",
    requests: 0,
  },
  "an interrupt of half a batch": {
    left: [...three, result("c1"), interrupt],
    knows: (world) => void world.hands.journal.set("c2", { kind: "known", value: known }),
    first: "interrupt",
    outcomes: [1, 1, 2],
    requests: 0,
  },
  "an interrupt that was honoured, but for the idle": {
    left: [...call, interrupt, result("c1")],
    first: "interrupt",
    outcomes: [1],
    requests: 0,
  },
  "an interrupt and then another message": {
    left: [...call, interrupt, said("Do something else.")],
    first: "interrupt",
    outcomes: [2],
    requests: 1,
  },
  "an interrupt before the first request of a turn": {
    left: [resolved, lease, running, interrupt],
    first: "interrupt",
    requests: 0,
  },

  "a question that was not put": { left: question, first: "go_idle", outcomes: [], requests: 0, stop: 2 },
  "a question that waits": {
    left: [...question, waits("c1")],
    first: "wait",
    outcomes: [],
    requests: 0,
    stop: 2,
  },
  "a confirmation that arrived meanwhile": {
    left: [...question, waits("c1"), allow("c1")],
    first: "run_calls",
    outcomes: [1],
    runs: ["c1"],
  },
  "a confirmation that arrived before the question was put": {
    left: [...question, allow("c1")],
    first: "run_calls",
    outcomes: [1],
    runs: ["c1"],
  },
  "a denial that arrived meanwhile": {
    left: [
      ...[...question, waits("c1")],
      { type: "user.tool_confirmation", body: { toolUseId: "c1", result: "RESULT_DENY" } },
    ],
    first: "settle_calls",
    outcomes: [2],
  },
  "a confirmed call that a dead brain may have begun": {
    left: [...question, waits("c1"), allow("c1"), running, hand],
    knows: (world) => void world.hands.journal.set("c1", { kind: "known", value: known }),
    first: "run_calls",
    outcomes: [1],
  },
  "a confirmation that came twice": {
    left: [...question, waits("c1"), allow("c1"), running, result("c1"), allow("c1")],
    first: "call_model",
    outcomes: [1],
  },

  "a custom call that was not put": { left: custom, first: "go_idle", requests: 0, stop: 2 },
  "a custom result that arrived meanwhile": {
    left: [
      ...[...custom, waits("c1")],
      { type: "user.custom_tool_result", body: { customToolUseId: "c1", content: [] } },
    ],
    first: "call_model",
  },
  "a custom result that came twice, with other words": {
    left: [
      ...custom,
      { type: "user.custom_tool_result", body: { customToolUseId: "c1", content: [] } },
      { type: "user.custom_tool_result", body: { customToolUseId: "c1", isError: true, content: [] } },
    ],
    first: "call_model",
  },

  "a late result after a synthetic one [B005]": {
    left: [
      ...[...call, interrupt, result("c1")],
      { type: "session.usage", body: {} },
      { type: "session.status_idle", body: { stopReason: { type: "TYPE_END_TURN" } } },
      { type: "ganglion.late_tool_result", body: { toolUseId: "c1", content: [] } },
    ],
    first: "wait",
    outcomes: [1],
    requests: 0,
  },
  "a second result for one call": {
    left: [...call, result("c1"), result("c1")],
    first: "call_model",
    outcomes: [1, 1],
  },
  "a call id that an older turn had as well [B004]": {
    left: [
      ...[...call, result("c1"), span("s2", "9"), end("s2", "end_turn")],
      { type: "session.status_idle", body: { stopReason: { type: "TYPE_END_TURN" } } },
      ...[said("Again."), running, span("s3", "13")],
      ...[use("c9", "s3", 0, { providerCallId: "c1" }), end("s3")],
    ],
    first: "run_calls",
    outcomes: [1, 1],
    runs: ["c9"],
  },
  "an answer that was cut in a call [B025]": {
    left: [resolved, lease, running, span("s1"), use("c1", "s1", 0), end("s1", "max_tokens")],
    first: "settle_calls",
    outcomes: [2],
  },
  "a failed turn without its idle": {
    left: [
      ...[resolved, lease, running, span("s1"), failedEnd("s1", "MODEL_UNAUTHORIZED")],
      { type: "session.error", body: { errorType: "model_request_failed_error" } },
    ],
    // What the log does not say did not happen: the brain that died had not ended the turn.
    first: "call_model",
  },
};
