import fc from "fast-check";
import type { Event } from "../../../../services/gen/ganglion/types/v1/event.ts";
import { toEvents, type WrittenEvent } from "../../../golden/load-log.ts";
import { session } from "./brain.ts";

// Few ids, so that events meet: spans without end, results without call, ids used twice, all of it out of order.
const n = fc.integer({ min: 1, max: 4 });
const words = fc.constantFrom("", " ", "hello", "é漢\u{1f600}");
const anyEvent: fc.Arbitrary<Omit<WrittenEvent, "id">> = fc.oneof(
  words.map((text) => ({ type: "user.message", body: { content: [{ type: "text", text }] } })),
  fc.constant({ type: "user.interrupt", body: {} }),
  n.map((i) => ({ type: "span.model_request_start", body: { consumedPosition: "999", attempt: i } })),
  fc.constant({
    type: "span.model_request_start",
    body: { attempt: 1, purpose: "MODEL_REQUEST_PURPOSE_COMPACTION" },
  }),
  fc.nat(40).map((through) => ({
    type: "agent.thread_context_compacted",
    body: {
      throughPosition: String(through),
      summary: { type: "text", text: "hello before" },
      modelRequestStartId: "$span",
    },
  })),
  fc.record({ i: n, text: words }).map(({ i, text }) => ({
    type: "agent.message",
    body: { block: { type: "text", text }, modelRequestStartId: "$span", blockIndex: i },
  })),
  fc.record({ i: n, ask: fc.boolean(), whole: fc.boolean() }).map(({ i, ask, whole }) => ({
    type: "agent.tool_use",
    body: {
      block: { type: "tool_use", id: `call-${i}`, name: "bash", input: {} },
      modelRequestStartId: "$span",
      blockIndex: 10 + i,
      providerCallId: `call-${i}`,
      name: "bash",
      inputJson: whole ? "{}" : '{"comma',
      permission: ask ? "PERMISSION_ASK" : "PERMISSION_ALLOW",
      policy: "p",
    },
  })),
  fc
    .record({ isError: fc.boolean(), reason: fc.constantFrom("end_turn", "tool_use", "max_tokens", "odd") })
    .map(({ isError, reason }) => ({
      type: "span.model_request_end",
      body: { modelRequestStartId: "$span", isError, providerStopReason: isError ? "" : reason },
    })),
  n.map((i) => ({
    type: "agent.tool_result",
    body: {
      toolUseId: `$call${i}`,
      content: [{ type: "text", text: "r" }],
      outcome: "TOOL_OUTCOME_COMPLETED",
    },
  })),
  n.map((i) => ({
    type: "user.tool_confirmation",
    body: { toolUseId: `$call${i}`, result: "RESULT_ALLOW" },
  })),
  fc.constant({ type: "session.status_running", body: {} }),
  fc.constant({ type: "session.status_idle", body: { stopReason: { type: "TYPE_END_TURN" } } }),
);
const SMALL = { compact_at_tokens: 100, window_tokens: 200, keep_tokens: 10 };
const anyStrategy = fc.constantFrom<[string, Record<string, unknown>]>(
  ["", {}],
  ["full/1", {}],
  ["trim/1", { keep_turns: 1, step_turns: 1, min_bytes: 0 }],
  ["compaction/1", SMALL],
  ["cache-stable/1", SMALL],
);

/** Any log under any strategy. */
export const anyLog: fc.Arbitrary<Event[]> = fc
  .tuple(anyStrategy, fc.array(anyEvent, { maxLength: 40 }))
  .map(([[strategy, options], events]) => toLog(events, strategy, options));

function toLog(
  events: readonly Omit<WrittenEvent, "id">[],
  strategy: string,
  options: Record<string, unknown>,
): Event[] {
  let span = "sevt_none";
  const calls = new Map<string, string>();
  const written = events.map(({ type, body }, i) => {
    const id = `sevt_${i}`;
    if (type === "span.model_request_start") span = id;
    if (type === "agent.tool_use") calls.set(`$call${String(body.providerCallId).slice(-1)}`, id);
    const filled = Object.entries(body).map(([name, value]) => {
      if (value === "$span") return [name, span];
      return [
        name,
        typeof value === "string" && value.startsWith("$call") ? (calls.get(value) ?? "sevt_x") : value,
      ];
    });
    return { id, type, body: Object.fromEntries(filled) as Record<string, unknown> };
  });
  return toEvents([...session({}, "", strategy, options).slice(0, 1), ...written]);
}
