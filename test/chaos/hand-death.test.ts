import assert from "node:assert/strict";
import type { Event } from "../../services/gen/ganglion/types/v1/event.ts";
import { answerOf, bodiesOf, checkLog, textOf } from "../kit/check-log.ts";
import { COUNTED_COMMAND, HandFiles } from "../kit/hand-files.ts";
import { sharedStage } from "../kit/shared-stage.ts";
import { type Stage, script } from "../kit/stage.ts";

const bash = (command: string) => ({ calls: [{ name: "bash", input: { command } }] });

describe("a hand dies", function () {
  this.timeout(120_000);
  let stage: Stage;

  before(async function () {
    this.timeout(240_000);
    stage = await sharedStage();
    await stage.whole();
  });
  after(() => stage?.whole());

  const killHand = async (sessionId: string): Promise<string> => {
    const { hands } = await stage.hands.listHands({ sessionId });
    const hand = hands.find(({ hostPid }) => hostPid > 0n);
    assert.ok(hand, "the session has a hand");
    process.kill(Number(hand.hostPid), "SIGKILL");
    return hand.id;
  };

  const checkLoss = (events: Event[], dead: string): void => {
    checkLog(events);
    assert.deepEqual(
      bodiesOf(events, "ganglionHandLost").map(({ handId }) => handId),
      [dead],
    );
    const hands = bodiesOf(events, "ganglionHandProvisioned").map(({ handId }) => handId);
    assert.equal(hands.length, 2, "a new hand");
    assert.equal(hands[0], dead);
    assert.notEqual(hands[1], dead);
  };

  it("in the middle of a command: an error result, then a new hand, and the turn goes on", async () => {
    const sessionId = await stage.newSession();
    let dead = "";
    const see = async (event: Event) => {
      if (event.body?.$case !== "ganglionHandProvisioned" || dead !== "") return;
      await new HandFiles(stage.mesh, event.body.value.handId).appears("begun");
      dead = await killHand(sessionId);
    };
    const text = script([bash(COUNTED_COMMAND), bash("ls; echo in-a-new-hand")]);
    await stage.turn(sessionId, text, ({ message }) => message?.$case === "event" && see(message.value));
    const events = await stage.log(sessionId);
    checkLoss(events, dead);
    const [lost, found] = bodiesOf(events, "agentToolResult");
    assert.equal(lost?.isError, true);
    assert.notEqual(lost?.outcome, 2, "it had begun, so nobody may say that it did not run");
    assert.match(textOf(lost?.content ?? []), /hand is gone/);
    assert.equal(found?.isError, false);
    assert.equal(
      textOf(found?.content ?? []).trim(),
      "in-a-new-hand",
      "the old files are gone with the hand",
    );
    assert.equal(answerOf(events), "The script has ended.");
  });

  it("between two turns: the next call says so, and the one after it runs in a new hand", async () => {
    const sessionId = await stage.newSession();
    await stage.turn(sessionId, script([bash("echo kept > file")]));
    const dead = await killHand(sessionId);
    await stage.turn(sessionId, script([bash("cat file"), bash("echo in-a-new-hand")], "again=1"));
    const events = await stage.log(sessionId);
    checkLoss(events, dead);
    const results = bodiesOf(events, "agentToolResult");
    assert.equal(results.at(-1)?.isError, false);
    assert.match(textOf(results.at(-1)?.content ?? []), /in-a-new-hand/);
    assert.equal(results[1]?.isError, true, "the model is told that its files are gone");
  });

  it("with its host: the call that ran says so honestly, and the session goes on", async () => {
    const sessionId = await stage.newSession();
    let killed = false;
    const see = async (event: Event) => {
      if (event.body?.$case !== "ganglionHandProvisioned" || killed) return;
      killed = true;
      await new HandFiles(stage.mesh, event.body.value.handId).appears("begun");
      stage.mesh.kill("sandbox-1");
    };
    const text = script([bash(COUNTED_COMMAND), bash("echo in-a-new-hand")]);
    await stage.turn(sessionId, text, ({ message }) => message?.$case === "event" && see(message.value));
    const events = await stage.log(sessionId);
    checkLog(events);
    const [lost, found] = bodiesOf(events, "agentToolResult");
    assert.equal(lost?.isError, true);
    assert.equal(lost?.outcome, 3, textOf(lost?.content ?? []));
    assert.match(textOf(found?.content ?? []), /in-a-new-hand/);
    await stage.whole();
  });
});
