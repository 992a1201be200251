import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { bodiesOf, textOf } from "../kit/check-log.ts";
import { wholeStage } from "../kit/shared-stage.ts";
import { type Stage, script } from "../kit/stage.ts";

describe("a window that fills, through the whole mesh", function () {
  this.timeout(90_000);
  let stage: Stage;

  before(async function () {
    stage = await wholeStage(this);
  });

  it("an agent of the official SDK's chooses compaction; the session goes on, and the model gets back what left its window [B028]", async () => {
    const agent = await stage.sdk.beta.agents.create({
      name: "compacts",
      model: "claude-sonnet-5-5",
      tools: [{ type: "agent_toolset_20260401" }],
      metadata: {
        "ganglion.context_strategy": "compaction/1",
        "ganglion.context_options": JSON.stringify({ compact_at_tokens: 6000, keep_tokens: 500 }),
      },
    });
    const { id } = await stage.sdk.beta.sessions.create({
      agent: agent.id,
      environment_id: stage.environmentId,
      vault_ids: [stage.vaultId],
    });
    const word = randomUUID();
    await stage.turn(
      id,
      `${"Nothing of note. ".repeat(1500)}The word is ${word}.\n${script([{ text: "Noted." }])}`,
    );
    const look = { name: "session_log", input: { text: word, types: ["user.message"], text_offset: 25_000 } };
    const events = await stage.turn(id, script([{ calls: [look] }, { text: "Found." }]));
    assert.equal(bodiesOf(events, "agentThreadContextCompacted").length, 1);
    assert.deepEqual(
      bodiesOf(events, "spanModelRequestStart").map(({ purpose }) => purpose),
      [2, 1, 1],
    );
    const [result] = bodiesOf(events, "agentToolResult");
    assert.ok(textOf(result?.content ?? []).includes(word));
    assert.equal(bodiesOf(events, "sessionStatusIdle").at(-1)?.stopReason?.type, 1);
  });
});
