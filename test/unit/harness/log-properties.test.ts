import assert from "node:assert/strict";
import fc from "fast-check";
import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { decide } from "../../../services/harness/domain/decide.ts";
import { fold } from "../../../services/harness/domain/fold.ts";
import { projectRequest } from "../../../services/harness/domain/project-request.ts";
import { emptyState, type SessionState } from "../../../services/harness/domain/session-state.ts";
import { toEvents, type WrittenEvent } from "../../golden/load-log.ts";
import { describeState } from "./describe-state.ts";
import { session } from "./fakes/brain.ts";

interface Block {
  type: string;
  id?: string;
  tool_use_id?: string;
  text?: string;
}

// Few ids, so that events meet: spans without end, results without call, ids used twice, all of it out of order.
const n = fc.integer({ min: 1, max: 4 });
const words = fc.constantFrom("", " ", "hello", "é漢\u{1f600}");
const anyEvent: fc.Arbitrary<Omit<WrittenEvent, "id">> = fc.oneof(
  words.map((text) => ({ type: "user.message", body: { content: [{ type: "text", text }] } })),
  fc.constant({ type: "user.interrupt", body: {} }),
  n.map((i) => ({ type: "span.model_request_start", body: { consumedPosition: "999", attempt: i } })),
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
const anyLog = fc.array(anyEvent, { maxLength: 40 }).map(toLog);

describe("any log", () => {
  it("folds to the same state in one go and in two", () => {
    fc.assert(
      fc.property(anyLog, fc.nat(40), (log, at) => {
        const half = log.slice(0, at).reduce(fold, emptyState());
        assert.deepEqual(describeState(log.slice(at).reduce(fold, half)), describeState(foldAll(log)));
      }),
    );
  });

  it("folds an event that comes twice once", () => {
    fc.assert(
      fc.property(anyLog, (log) => {
        const twice = log.flatMap((event) => [event, event]);
        assert.deepEqual(describeState(foldAll(twice)), describeState(foldAll(log)));
      }),
    );
  });

  it("gives the same decision and the same bytes each time [B014]", () => {
    fc.assert(
      fc.property(anyLog, (log) => {
        const [a, b] = [foldAll(log), foldAll(log)];
        assert.deepEqual(decide(a), decide(b));
        if (decide(a).type === "call_model" && hasWords(a))
          assert.deepEqual(projectRequest(a), projectRequest(b));
      }),
    );
  });

  it("never leads to a request with an unanswered call, an orphan result or empty text [B001] [B034] [B011]", () => {
    let asked = 0;
    fc.assert(
      fc.property(anyLog, (log) => {
        const state = foldAll(log);
        if (decide(state).type !== "call_model" || !hasWords(state)) return;
        asked += 1;
        const { messages } = JSON.parse(projectRequest(state).toString("utf8")) as {
          messages: { role: string; content: Block[] }[];
        };
        messages.forEach(({ role, content }, i) => {
          assert.ok(content.length > 0);
          assert.notEqual(role, messages[i + 1]?.role);
          assert.ok(content.every((block) => block.type !== "text" || block.text?.trim() !== ""));
          const calls = content.filter((block) => block.type === "tool_use").map((block) => block.id);
          const next = (messages[i + 1]?.content ?? []).filter((block) => block.type === "tool_result");
          if (role === "assistant")
            assert.deepEqual(
              next.map((block) => block.tool_use_id),
              calls,
            );
          if (i === 0) assert.ok(content.every((block) => block.type !== "tool_result"));
        });
      }),
      { numRuns: 500 },
    );
    assert.ok(asked > 20, `only ${asked} logs led to a request`);
  });
});

function foldAll(log: readonly Event[]): SessionState {
  return log.reduce(fold, emptyState());
}

function hasWords(state: SessionState): boolean {
  return [...state.turns, ...state.queued].some(
    (turn) => turn.kind === "user" && turn.content.some((block) => /hello|é/.test(String(block.data?.value))),
  );
}

function toLog(events: readonly Omit<WrittenEvent, "id">[]): Event[] {
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
  return toEvents([...session().slice(0, 1), ...written]);
}
