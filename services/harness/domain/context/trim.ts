import { isUnchanging } from "../is-unchanging.ts";
import { plainTurn } from "../kept-turns.ts";
import type { AssistantTurn, Call, LoggedResult, SessionState, Turn } from "../session-state.ts";
import { blockSize, textBlock } from "../text-block.ts";
import type { ContextOptions, ContextStrategy } from "./strategy.ts";

/**
 * Replaces the results of old tool calls by a note that says where they are. The border moves `step_turns` whole answers
 * at a time, so that what was sent before stays the beginning of what is sent next in all other requests.
 */
export const trim: ContextStrategy = {
  name: "trim/1",
  options: {
    keep_turns: { byDefault: () => 10, min: 1, max: 10_000 },
    step_turns: { byDefault: () => 10, min: 1, max: 10_000 },
    min_bytes: { byDefault: () => 2048, min: 0, max: 1_000_000_000 },
  },
  mayDrop: true,
  isCompacting: false,
  promise: "none",
  breakpoints: "automatic",
  settings: "last",
  view,
};

function view(state: SessionState, options: ContextOptions): readonly Turn[] {
  const { keep_turns: keep = 0, step_turns: step = 1, min_bytes: minBytes = 0 } = options;
  const answers = state.turns.filter((turn) => turn.kind === "assistant" && turn.calls.length > 0).length;
  let old = Math.max(0, Math.floor((answers - keep) / step) * step);
  return state.turns.map((turn) => {
    if (old === 0 || turn.kind !== "assistant" || turn.calls.length === 0) return turn;
    old -= 1;
    return trimmed(turn, minBytes);
  });
}

// The same turn is trimmed to the same object, so that its blocks are looked at once.
const known = new WeakMap<AssistantTurn, Map<number, AssistantTurn>>();

function trimmed(turn: AssistantTurn, minBytes: number): AssistantTurn {
  const before = known.get(turn)?.get(minBytes);
  if (before) return before;
  const calls = turn.calls.map((call) => (call.result ? withNote(call, call.result, minBytes) : call));
  const now = { ...plainTurn(turn), calls };
  if (isUnchanging(turn)) known.set(turn, new Map([[minBytes, now]]));
  return now;
}

function withNote(call: Call, result: LoggedResult, minBytes: number): Call {
  const size = result.content.reduce((sum, block) => sum + blockSize(block), 0);
  if (size < minBytes) return call;
  const before = result.position - 1n;
  const note =
    `[The result of this call is left out to save room: ${size} bytes, at position ${result.position} of the log. ` +
    `The tool session_log gives it back: {"after_position": ${before}, "limit": 1}.]`;
  return { ...call, result: { ...result, content: [textBlock(note)] } };
}
