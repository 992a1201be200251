import assert from "node:assert/strict";
import fc from "fast-check";
import { parseState, serializeState } from "../../../services/harness/domain/checkpoint.ts";
import { decide } from "../../../services/harness/domain/decide.ts";
import { fold } from "../../../services/harness/domain/fold.ts";
import { foldAhead } from "../../../services/harness/domain/fold-ahead.ts";
import { project } from "../../../services/harness/domain/project-request.ts";
import { emptyState, type SessionState } from "../../../services/harness/domain/session-state.ts";
import { toEvents, type WrittenEvent } from "../../golden/load-log.ts";
import { session } from "./fakes/brain.ts";

type Turn = "says" | "calls" | "calls twice" | "says nothing" | "is compacted";
const anyTurns = fc.array(
  fc.record({
    agent: fc.constantFrom<Turn>("says", "calls", "calls", "calls twice", "says nothing", "is compacted"),
    user: fc.integer({ min: 0, max: 2 }),
  }),
  { minLength: 20, maxLength: 60 },
);
const anyStrategy = fc.constantFrom<[string, Record<string, unknown>]>(
  ["full/1", {}],
  ["trim/1", { keep_turns: 3, step_turns: 2, min_bytes: 0 }],
  ["compaction/1", {}],
  ["cache-stable/1", {}],
);

describe("a conversation that is written on where it was left", () => {
  it("has the bytes that it has when it is written at once, whatever it is made of", () => {
    let compared = 0;
    fc.assert(
      fc.property(anyStrategy, anyTurns, ([strategy, options], turns) => {
        const log = toEvents([
          ...session({}, "Hello.", strategy, options),
          ...turns.flatMap(({ agent, user }, i) => [...answered(agent, i), ...said(user, i)]),
        ]);
        // The one state grows, as a brain's does; the others are folded from events of their own.
        let state = emptyState();
        for (const [at, event] of log.entries()) {
          const isResult = event.body?.$case === "agentToolResult";
          const ahead = isResult
            ? foldAhead(state, [{ id: event.id, body: event.body as never }])
            : undefined;
          fold(state, event);
          // Every now and then another brain goes on from a checkpoint.
          if (at % 17 === 16) state = again(state);
          for (const seen of ahead ? [ahead, state] : [state]) {
            if (decide(seen).type !== "call_model" || at % 3 > 0) continue;
            const fresh = log.slice(0, at + 1).reduce(fold, emptyState());
            assert.deepEqual(project(seen), project(fresh));
            compared += 1;
          }
        }
      }),
      { numRuns: 40 },
    );
    assert.ok(compared > 200, `only ${compared} requests were compared`);
  });
});

function again(state: SessionState): SessionState {
  const written = serializeState(state, 0);
  const read = written && parseState({ ...written, older: () => written.older });
  assert.ok(read);
  return read;
}

function answered(agent: Turn, i: number): WrittenEvent[] {
  const span = `sevt_s${i}`;
  const of = (type: string, id: string, body: Record<string, unknown>) => ({
    type,
    id: `sevt_${id}${i}`,
    body,
  });
  const begin = of("span.model_request_start", "s", { consumedPosition: "99999", attempt: 1 });
  if (agent === "is compacted") {
    const purpose = "MODEL_REQUEST_PURPOSE_COMPACTION";
    return [
      of("span.model_request_start", "s", { attempt: 1, purpose }),
      of("agent.thread_context_compacted", "z", {
        throughPosition: String(Math.max(1, i * 3)),
        summary: { type: "text", text: `before ${i}` },
        modelRequestStartId: span,
      }),
      of("span.model_request_end", "e", { modelRequestStartId: span, providerStopReason: "end_turn" }),
    ];
  }
  const text = agent === "says nothing" ? " " : `answer ${i}`;
  const calls = agent === "calls" ? [1] : agent === "calls twice" ? [1, 2] : [];
  return [
    begin,
    of("agent.message", "m", { block: { type: "text", text }, modelRequestStartId: span, blockIndex: 0 }),
    ...calls.map((n) =>
      of("agent.tool_use", `c${n}_`, {
        block: { type: "tool_use", id: `call-${n}`, name: "bash", input: {} },
        modelRequestStartId: span,
        blockIndex: n,
        providerCallId: `call-${n}`,
        name: "bash",
        inputJson: "{}",
        permission: "PERMISSION_ALLOW",
        policy: "p",
      }),
    ),
    of("span.model_request_end", "e", {
      modelRequestStartId: span,
      providerStopReason: calls.length > 0 ? "tool_use" : "end_turn",
    }),
    ...calls.map((n) =>
      of("agent.tool_result", `r${n}_`, {
        toolUseId: `sevt_c${n}_${i}`,
        content: [{ type: "text", text: `result ${n} of ${i}` }],
        outcome: "TOOL_OUTCOME_COMPLETED",
      }),
    ),
  ];
}

function said(times: number, i: number): WrittenEvent[] {
  return Array.from({ length: times }, (_, n) => ({
    type: "user.message",
    id: `sevt_u${n}_${i}`,
    body: { content: [{ type: "text", text: `said ${n} of ${i}` }] },
  }));
}
