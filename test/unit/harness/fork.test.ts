import assert from "node:assert/strict";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { decide } from "../../../services/harness/domain/decide.ts";
import { fold } from "../../../services/harness/domain/fold.ts";
import { emptyState } from "../../../services/harness/domain/session-state.ts";
import { loadLog } from "../../golden/load-log.ts";
import { session, World } from "./fakes/brain.ts";
import { answer, bash } from "./fakes/scripted-parts.ts";

const FORKED = "forked-open-calls";
const UNKNOWN = 3;

function world(...last: Event["body"][]): World {
  const made = new World([]);
  for (const event of loadLog(FORKED)) made.log.events.push(event);
  for (const body of last) {
    const position = BigInt(made.log.events.length + 1);
    made.log.events.push(Event.fromPartial({ id: `sevt_x${position}`, position, body } as never));
  }
  made.log.epoch = 2n;
  return made;
}

const outcomes = ({ log }: World) =>
  log.all("agentToolResult").map(({ toolUseId, outcome, isError }) => [toolUseId, outcome, isError]);

describe("a forked session", () => {
  it("closes what may have been run for its source, looks nowhere for it, and still asks what was asked", async () => {
    const forked = world();
    await forked.drive();
    assert.deepEqual(outcomes(forked).slice(1), [
      ["sevt_allowed", UNKNOWN, true],
      ["sevt_confirmed", UNKNOWN, true],
    ]);
    assert.deepEqual([forked.hands.runs, forked.hands.provisioned], [[], 0]);
    assert.deepEqual(forked.log.all("sessionStatusIdle").at(-1)?.stopReason, {
      type: 2,
      eventIds: ["sevt_asked", "sevt_custom"],
    });
  });

  it("runs in a hand of its own what its client allows there, and takes the client's own results", async () => {
    const block = {
      type: "text",
      data: { $case: "json" as const, value: Buffer.from('{"type":"text","text":"5"}') },
    };
    const forked = world(
      {
        $case: "userToolConfirmation",
        value: { toolUseId: "sevt_asked", result: 1, denyMessage: undefined },
      },
      {
        $case: "userCustomToolResult",
        value: { customToolUseId: "sevt_custom", content: [block], isError: false },
      },
    );
    forked.model.steps.push(answer("end_turn", "Done."));
    await forked.drive();
    assert.deepEqual([forked.hands.runs, forked.hands.provisioned], [["four"], 1]);
    assert.equal(forked.log.all("sessionStatusIdle").at(-1)?.stopReason?.type, 1);
  });

  it("an interrupt closes the rest, and does not call not run what may have been", async () => {
    const forked = world({ $case: "userInterrupt", value: { sessionThreadId: "" } });
    // The message that came before it is answered afterwards.
    forked.model.steps.push(answer("end_turn", "Done."));
    await forked.drive();
    assert.deepEqual(
      outcomes(forked).filter(([id]) => id === "sevt_allowed" || id === "sevt_confirmed"),
      [
        ["sevt_allowed", UNKNOWN, true],
        ["sevt_confirmed", UNKNOWN, true],
      ],
    );
    assert.deepEqual(forked.hands.runs, []);
    assert.equal(forked.log.all("sessionStatusIdle").at(-1)?.stopReason?.type, 1);
  });

  it("ends a request that was under way in its source and makes its own", async () => {
    const forked = new World([]);
    for (const event of loadLog("takeover-open-span")) forked.log.events.push(event);
    const position = BigInt(forked.log.events.length + 1);
    const body = { $case: "ganglionSessionForked" as const, value: { sourceSessionId: "sesn_s" } };
    forked.log.events.push(Event.fromPartial({ id: "sevt_forked", position, body }));
    forked.log.epoch = 2n;
    forked.model.steps.push(answer("end_turn", "Here."));
    await forked.drive();
    const [first, second] = forked.log.all("spanModelRequestEnd");
    assert.deepEqual([first?.errorReason, second?.isError], ["INTERRUPTED", false]);
  });

  it("knows no hand and no host of its source", async () => {
    const source = new World(session(), answer("tool_use", bash("a", "one")), answer("end_turn", "Done."));
    await source.drive();
    const position = BigInt(source.log.events.length + 1);
    const body = { $case: "ganglionSessionForked" as const, value: { sourceSessionId: "sesn_s" } };
    const state = [...source.log.events, Event.fromPartial({ id: "sevt_forked", position, body })].reduce(
      fold,
      emptyState(),
    );
    assert.deepEqual([state.hand, state.handsProvisioned, [...state.sandboxAddrs]], [null, 0, []]);
    assert.deepEqual(decide(state), { type: "wait" });
  });

  it("takes for foreign only what may have been run", () => {
    const state = loadLog(FORKED).reduce(fold, emptyState());
    const foreign = [...state.openCalls.values()].filter(({ isForeign }) => isForeign).map(({ id }) => id);
    assert.deepEqual(foreign, ["sevt_allowed", "sevt_confirmed"]);
  });
});
