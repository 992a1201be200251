import assert from "node:assert/strict";
import { answer, HostileMcp } from "../contract/mcp-proxy/hostile-mcp.ts";
import { bodiesOf, checkLog, textOf } from "../kit/check-log.ts";
import { Stage, script } from "../kit/stage.ts";

// 6 MiB, every character two bytes.
const TEXT = "ü".repeat(3 << 20);

describe("a result of 6 MB, through the whole mesh", function () {
  this.timeout(90_000);
  let upstream: HostileMcp;
  let stage: Stage;

  before(async function () {
    this.timeout(240_000);
    upstream = await HostileMcp.start();
    upstream.misbehave = (rpc, _request, response) => {
      if (rpc.method === "tools/call") answer(response, rpc, { content: [{ type: "text", text: TEXT }] });
      return rpc.method === "tools/call";
    };
    stage = await Stage.start({ httpHosts: [upstream.host] });
    await stage.whole();
  });
  after(async function () {
    this.timeout(60_000);
    await stage?.stop();
    await upstream?.stop();
  });

  it("is kept whole beside the log, capped for the model, and wedges nothing [B031]", async () => {
    const agent = await stage.sdk.beta.agents.create({
      name: "reads much",
      model: "claude-opus-5-5",
      mcp_servers: [{ type: "url", name: "huge", url: upstream.url }],
      tools: [
        {
          type: "mcp_toolset",
          mcp_server_name: "huge",
          default_config: { enabled: true, permission_policy: { type: "always_allow" } },
        },
      ],
    });
    const { id: sessionId } = await stage.sdk.beta.sessions.create({
      agent: agent.id,
      environment_id: stage.environmentId,
      vault_ids: [stage.vaultId],
    });
    const calls = [{ name: "mcp__huge__one", input: {} }];
    const events = await stage.turn(sessionId, script([{ calls }, { text: "That was much." }], "id=huge"));
    const [result] = bodiesOf(events, "agentMcpToolResult");
    assert.deepEqual([result?.isError, result?.outcome], [false, 1]);
    assert.ok(textOf(result?.content ?? []).length < 1 << 20);
    const whole = JSON.stringify([{ type: "text", text: TEXT }]);
    assert.equal(Number(result?.fullOutput?.sizeBytes), Buffer.byteLength(whole));
    const pieces: Buffer[] = [];
    const request = { sessionId, payloadId: result?.fullOutput?.payloadId ?? "", offsetBytes: 0n };
    for await (const { data } of stage.sessions.getPayload(request)) pieces.push(Buffer.from(data));
    assert.ok(Buffer.concat(pieces).equals(Buffer.from(whole)));
    const sent = (await stage.model.journal.entries()).filter(({ kind }) => kind === "request");
    assert.equal(sent.length, 2);
    for (const { bytes } of sent) assert.ok(Number(bytes) < 1 << 20, String(bytes));

    await stage.turn(sessionId, script([{ text: "Still here." }]));
    const log = await stage.log(sessionId);
    checkLog(log);
    assert.equal(bodiesOf(log, "sessionStatusIdle").at(-1)?.stopReason?.type, 1);
    assert.equal(upstream.of("tools/call").length, 1);
  });
});
