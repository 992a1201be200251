import assert from "node:assert/strict";
import { GanglionError } from "../../services/common/errors/ganglion-error.ts";
import type { Event } from "../../services/gen/ganglion/types/v1/event.ts";
import { userMessage } from "../contract/session/session-kit.ts";
import { answerOf, bodiesOf, checkLog } from "../kit/check-log.ts";
import { Stage, script } from "../kit/stage.ts";

const SESSIONS = 4;
const TURNS = 3;
const REPLICAS = ["session-1", "session-2"];

describe("two session services in one mesh", function () {
  this.timeout(180_000);
  let stage: Stage;
  before(async function () {
    this.timeout(240_000);
    stage = await Stage.start({ ownModel: true, upArgs: ["--session-replicas", "2"] });
  });
  after(async function () {
    this.timeout(90_000);
    await stage?.stop();
  });

  // Insists with the same id, as every client may.
  const send = async (sessionId: string, event: Event): Promise<bigint> => {
    for (;;) {
      try {
        const events = [event];
        const request = { sessionId, events, expectedPosition: undefined, epoch: undefined };
        const { stored } = await stage.sessions.emitEvents(request, { waitForReady: true });
        return (stored[0]?.position ?? 1n) - 1n;
      } catch (error) {
        if (!(error instanceof GanglionError) || error.code !== "UNAVAILABLE") throw error;
      }
    }
  };

  it("each of them is killed under load, and nobody loses anything", async () => {
    let isOver = false;
    let previews = 0;
    let turnsDone = 0;
    const waiting: { after: number; resolve: () => void }[] = [];
    const turnsAfter = (count: number) =>
      new Promise<void>((resolve) => waiting.push({ after: turnsDone + count, resolve }));
    const noteTurn = () => {
      turnsDone += 1;
      for (const { after, resolve } of waiting) if (turnsDone >= after) resolve();
    };
    const work = Array.from({ length: SESSIONS }, async (_, n) => {
      const sessionId = await stage.newSession();
      let turns = 0;
      // At least so many turns, and as long as somebody is being killed.
      for (; turns < TURNS || !isOver; turns++) {
        const said = `word-${n}-${turns}`;
        const steps = [
          { text: "The hand first.", calls: [{ name: "bash", input: { command: `echo ${said}` } }] },
          { text: `It said ${said}.` },
        ];
        const head = await send(sessionId, userMessage(script(steps), `sevt_${n}_${turns}_${Date.now()}`));
        const events = await stage.until(sessionId, head, "session.status_idle", ({ message }) => {
          if (message?.$case === "preview") previews += 1;
        });
        assert.equal(answerOf(events), `It said ${said}.`);
        noteTurn();
      }
      return { sessionId, turns };
    });
    const all = Promise.all(work);
    all.catch(() => {
      isOver = true;
    });
    const disturb = async () => {
      for (const replica of REPLICAS) {
        await turnsAfter(2);
        await stage.mesh.killAndWait(replica);
      }
      await turnsAfter(2);
      isOver = true;
    };
    await Promise.race([disturb(), all]);
    for (const { sessionId, turns } of await all) {
      const events = await stage.log(sessionId);
      checkLog(events);
      assert.equal(bodiesOf(events, "userMessage").length, turns);
      assert.equal(bodiesOf(events, "agentToolResult").length, turns);
    }
    assert.ok(previews > 0, "nobody heard a preview");
    for (const replica of REPLICAS) {
      assert.match(stage.mesh.log(replica), /EmitEvents/, `${replica} was given nothing to do`);
    }
  });
});
