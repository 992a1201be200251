import assert from "node:assert/strict";
import { Event, ToolOutcome } from "../../../services/gen/ganglion/types/v1/event.ts";
import { emptyTally, type Tally, tallyJob, tallyPhantoms } from "../../chaos/sessions-under-kills/tally.ts";

const { TOOL_OUTCOME_COMPLETED, TOOL_OUTCOME_NOT_RUN, TOOL_OUTCOME_UNKNOWN } = ToolOutcome;
const json = (value: object) => Buffer.from(JSON.stringify(value));
const text = (said: string) => ({
  type: "text",
  data: { $case: "json" as const, value: json({ type: "text", text: said }) },
});
type Body = NonNullable<Event["body"]>;

interface Case {
  mcp?: { outcome?: number; said?: string; isError?: boolean };
  bash?: { outcome?: number; said?: string; isError?: boolean };
  messages?: string[];
}

/** The log of one turn with an MCP call and a command. */
function logOf({ mcp = {}, bash = {}, messages = ["sevt_m"] }: Case): Event[] {
  const call = { modelRequestStartId: "sevt_span" };
  const command = "echo ran >> ran-s0-t1; wc -l < ran-s0-t1";
  const result = ({ outcome = TOOL_OUTCOME_COMPLETED as number, said = "1", isError = false }) => ({
    ...{ outcome, isError, content: [text(said)] },
  });
  const events: [string, string, Body["$case"], object][] = [
    ...messages.map((id): [string, string, Body["$case"], object] => [
      ...([id, "user.message", "userMessage", { content: [text("turn 1")] }] as const),
    ]),
    ["sevt_span", "span.model_request_start", "spanModelRequestStart", {}],
    ["sevt_a", "agent.mcp_tool_use", "agentMcpToolUse", { ...call, inputJson: json({ key: "s0-t1-b" }) }],
    ["sevt_b", "agent.tool_use", "agentToolUse", { ...call, inputJson: json({ command }) }],
    ["sevt_e", "span.model_request_end", "spanModelRequestEnd", { modelRequestStartId: "sevt_span" }],
    ["sevt_ra", "agent.mcp_tool_result", "agentMcpToolResult", { mcpToolUseId: "sevt_a", ...result(mcp) }],
    ["sevt_rb", "agent.tool_result", "agentToolResult", { toolUseId: "sevt_b", ...result(bash) }],
    ["sevt_i", "session.status_idle", "sessionStatusIdle", {}],
  ];
  return events.map(([id, type, $case, value], index) =>
    Event.fromPartial({ id, type, position: BigInt(index + 1), body: { $case, value } as Body }),
  );
}

function tallyOf(one: Case, { count = 1, hands = 1, sent = ["sevt_m"], turnsDone = 1 } = {}): Tally {
  const tally = emptyTally();
  const counts: Record<string, number> = count > 0 ? { "s0-t1-b": count } : {};
  const world = { counts, handsOf: () => hands };
  tallyJob(tally, { name: "s0", sent, turnsDone }, logOf(one), world);
  return tally;
}

describe("the tally of sessions under kills", () => {
  it("finds nothing wrong where every call took effect once", () => {
    const { lost, duplicated, completed } = tallyOf({});
    assert.deepEqual([lost, duplicated, completed], [[], [], 2]);
  });

  it("finds what was lost", () => {
    assert.match(tallyOf({}, { sent: ["sevt_m", "sevt_gone"] }).lost.join(), /message sevt_gone/);
    assert.match(tallyOf({}, { turnsDone: 2 }).lost.join(), /1 ends of 2 turns/);
    assert.match(tallyOf({}, { count: 0 }).lost.join(), /s0-t1-b: counted 0 times/);
    assert.match(tallyOf({ mcp: { isError: true, said: "no" } }).lost.join(), /said no \(error\)/);
  });

  it("finds what was done twice, and what was done though the log says that it was not", () => {
    assert.match(tallyOf({ messages: ["sevt_m", "sevt_n"] }).duplicated.join(), /a user message/);
    assert.match(tallyOf({}, { turnsDone: 0 }).duplicated.join(), /1 ends of 0 turns/);
    assert.match(tallyOf({}, { count: 2 }).duplicated.join(), /counted 2 times/);
    assert.match(tallyOf({}, { hands: 2 }).duplicated.join(), /ran in 2 hands/);
    assert.match(tallyOf({ bash: { said: "2" } }).duplicated.join(), /ran 2 times/);
    for (const tool of ["mcp", "bash"] as const) {
      assert.match(tallyOf({ [tool]: { outcome: TOOL_OUTCOME_NOT_RUN } }).duplicated.join(), /did run/);
      const twice = tallyOf({ [tool]: { outcome: TOOL_OUTCOME_UNKNOWN } }, { count: 2, hands: 2 });
      assert.equal(twice.duplicated.length, 2, "not knowing excuses one effect, not two");
    }
    const tally = emptyTally();
    tallyPhantoms(tally, new Set(["a"]), { counts: { a: 1, b: 1 }, handsOf: () => 0 });
    assert.deepEqual(tally.duplicated, ["b: nobody asked for it"]);
  });

  it("counts what is declared", () => {
    const unknown = tallyOf(
      { mcp: { outcome: TOOL_OUTCOME_UNKNOWN }, bash: { isError: true } },
      { count: 0 },
    );
    assert.deepEqual([unknown.unknown, unknown.handDied, unknown.lost], [1, 1, []]);
    const notRun = tallyOf({ mcp: { outcome: TOOL_OUTCOME_NOT_RUN } }, { count: 0 });
    assert.deepEqual([notRun.notRun, notRun.duplicated], [1, []]);
  });

  it("does not take a log with a hole", () => {
    const events = logOf({}).filter(({ position }) => position !== 3n);
    const world = { counts: {}, handsOf: () => 0 };
    assert.throws(() => tallyJob(emptyTally(), { name: "", sent: [], turnsDone: 1 }, events, world), /dense/);
  });
});
