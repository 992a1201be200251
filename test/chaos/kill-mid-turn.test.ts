import assert from "node:assert/strict";
import { answerOf, bodiesOf, checkLog, textOf } from "../kit/check-log.ts";
import { COUNTED_COMMAND, HandFiles } from "../kit/hand-files.ts";
import { sharedStage } from "../kit/shared-stage.ts";
import { type Stage, script } from "../kit/stage.ts";

/** What the session of a running turn needs; none of them may cost the turn or run its command twice. */
const NEEDED = ["gateway-1", "session-1", "postgres", "mcp-proxy-1", "vault"] as const;

describe("a part dies in the middle of a turn, and the turn is finished when it is back [B135]", function () {
  this.timeout(120_000);
  let stage: Stage;

  before(async function () {
    this.timeout(240_000);
    stage = await sharedStage();
  });
  beforeEach(() => stage.whole());
  after(() => stage?.whole());

  for (const part of NEEDED) {
    it(part, async () => {
      const sessionId = await stage.newSession();
      const call = { name: "bash", input: { command: COUNTED_COMMAND } };
      const text = script([{ text: "I will count.", calls: [call] }, { text: `${part} was away.` }]);
      let files: HandFiles | undefined;
      let killing: Promise<void> | undefined;
      await stage.turn(sessionId, text, async ({ message }) => {
        if (
          message?.$case !== "event" ||
          message.value.body?.$case !== "ganglionHandProvisioned" ||
          killing !== undefined
        )
          return;
        files = new HandFiles(stage.mesh, message.value.body.value.handId);
        await files.appears("begun");
        // The command ends, and the model is asked again, while the part is away.
        const pid = stage.mesh.kill(part);
        files.put("go");
        killing = stage.mesh.ready(part, pid);
      });
      await killing;
      const events = await stage.log(sessionId);
      checkLog(events);
      assert.deepEqual(files?.lines("counter"), ["ran"], "the command took effect once");
      const [result, ...more] = bodiesOf(events, "agentToolResult");
      assert.equal(more.length, 0);
      assert.match(textOf(result?.content ?? []), /ran 1 times/);
      assert.equal(answerOf(events), `${part} was away.`);
      assert.equal(bodiesOf(events, "sessionStatusIdle").at(-1)?.stopReason?.type, 1);
    });
  }
});
