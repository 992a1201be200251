import assert from "node:assert/strict";
import fc from "fast-check";
import { capText } from "../../../services/harness/domain/cap-text.ts";
import { parseState, serializeState } from "../../../services/harness/domain/checkpoint.ts";
import { renderTurn } from "../../../services/harness/domain/context/render-turn.ts";
import { transcriptOf } from "../../../services/harness/domain/context/transcript.ts";
import { fold } from "../../../services/harness/domain/fold.ts";
import { emptyState, type SessionState, type Turn } from "../../../services/harness/domain/session-state.ts";
import { toEvents } from "../../golden/load-log.ts";
import { askedOnce } from "./fakes/asked-once.ts";
import { session } from "./fakes/brain.ts";

describe("a transcript", () => {
  it("is what all of it would be when it is cut, from any state, up to any turn, at any length", () => {
    const events = Array.from({ length: 12 }, (_, n) =>
      askedOnce(n, n % 2 === 0 ? "\u{1f600}" : "long "),
    ).flat();
    const fold12 = () => toEvents([...session({}, "Begin."), ...events]).reduce(fold, emptyState());
    const { turns } = fold12();
    const anyEnd = fc.nat(turns.length);
    const anyBefore = fc.array(fc.constantFrom("", "before \u{1f600}", "b".repeat(300)), { maxLength: 1 });
    fc.assert(
      fc.property(
        anyEnd,
        fc.nat(9000),
        anyBefore,
        fc.nat(12),
        fc.nat(5),
        (end, limit, before, newest, left) => {
          const whole = [...before, ...turns.slice(0, end).map(entry)].join("\n\n");
          // One that was read back, and one of which the oldest have left the window then.
          const read = again(fold12(), newest);
          assert.equal(transcriptOf(before, read.turns, end, limit), capText(whole, limit));
          if (left > end) return;
          const rest = [...before, ...turns.slice(left, end).map(entry)].join("\n\n");
          const part = again(fold12(), newest).turns.slice(left);
          assert.equal(transcriptOf(before, part, end - left, limit), capText(rest, limit));
        },
      ),
    );
  });

  it("is not measured by a turn as it was before its late result", () => {
    const events = toEvents([...session({}, "Begin."), ...askedOnce(1, "long ")]);
    const results = events.filter(({ body }) => body?.$case === "agentToolResult");
    assert.equal(results.length, 1);
    const early = events.slice(0, events.indexOf(results[0]!));
    const state = early.reduce(fold, emptyState());
    const { length: end } = state.turns;
    transcriptOf([], state.turns, end, 100);
    const { turns } = results.reduce(fold, state);
    const whole = turns.slice(0, end).map(entry).join("\n\n");
    assert.equal(transcriptOf([], turns, end, 100), capText(whole, 100));
  });
});

function entry(turn: Turn): string {
  return renderTurn(turn, 4000).replaceAll(/^/gm, "> ");
}

function again(state: SessionState, newest: number): SessionState {
  const written = serializeState(state, newest);
  const read = written && parseState({ ...written, older: () => written.older });
  assert.ok(read);
  return read;
}
