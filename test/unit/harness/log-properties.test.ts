import assert from "node:assert/strict";
import fc from "fast-check";
import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { decide } from "../../../services/harness/domain/decide.ts";
import { fold } from "../../../services/harness/domain/fold.ts";
import { projectRequest } from "../../../services/harness/domain/project-request.ts";
import { emptyState, type SessionState } from "../../../services/harness/domain/session-state.ts";
import { describeState } from "./describe-state.ts";
import { anyLog } from "./fakes/any-log.ts";

interface Block {
  type: string;
  id?: string;
  tool_use_id?: string;
  text?: string;
}

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
