import assert from "node:assert/strict";
import { newId } from "../../../services/common/ids/new-id.ts";
import { McpProxyServiceService } from "../../../services/gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { ToolOutcome } from "../../../services/gen/ganglion/types/v1/event.ts";
import { startMcpUpstream, type TestMcpUpstream } from "../../kit/mcp-upstream.ts";
import type { RunningService } from "../../kit/start-service.ts";
import { type BoundSession, failureOf, ProxyKit } from "./proxy-kit.ts";

describe("two replicas of mcp-proxy", function () {
  this.timeout(60_000);
  let kit: ProxyKit;
  let upstream: TestMcpUpstream;
  let other: RunningService;
  let session: BoundSession;

  before(async () => {
    upstream = await startMcpUpstream();
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: new URL(upstream.url).host });
    other = await kit.startProxy({ GANGLION_INSTANCE: "mcp-proxy-2" });
    session = await kit.bound({ servers: [{ name: "demo", url: upstream.url, secret: upstream.token }] });
  });

  after(async () => {
    await other?.stop();
    await kit?.stop();
    await upstream?.stop();
  });

  const metadata = { get: (of: BoundSession) => ({ metadata: { "ganglion-session-token": of.token } }) };
  const at = (service: RunningService) =>
    kit.client(McpProxyServiceService, "harness", "harness-1", service.listening.addr);
  const call = async (
    service: RunningService,
    of: BoundSession,
    name: string,
    input: object,
    key = newId("sevt"),
  ) => {
    const inputJson = Buffer.from(JSON.stringify(input));
    const request = { mcpServerName: "demo", name, inputJson, key, timeout: undefined, acknowledgedKeys: [] };
    return (await (await at(service)).callTool(request, metadata.get(of))).call;
  };

  it("take a token that the other one issued, and refuse it from the same moment on [A131] [L7]", async () => {
    assert.equal((await call(other, session, "echo", { message: "x" }))?.isError, false);
    const own = await kit.bound({ servers: [{ name: "demo", url: upstream.url, secret: upstream.token }] });
    await call(other, own, "echo", { message: "x" });
    await call(kit.service, own, "echo", { message: "x" });
    await kit.raiseFence(own.sessionId, 0n, true);
    for (const service of [other, kit.service]) {
      assert.equal((await failureOf(call(service, own, "echo", { message: "x" }))).reason, "SESSION_ENDED");
    }
  });

  it("run a key once between them: the second waits for the first", async () => {
    const key = newId("sevt");
    const input = { duration: 1.5, steps: 3 };
    const both = [kit.service, other].map((service) =>
      call(service, session, "trigger-long-running-operation", input, key),
    );
    const [first, second] = await Promise.all(both);
    assert.deepEqual(first?.content, second?.content);
    const made = (await upstream.journal.entries()).filter(
      (entry) => JSON.stringify(entry.arguments) === JSON.stringify(input),
    );
    assert.equal(made.length, 1);
  });

  it("tell how far a call is that they run themselves, and nothing of the other one's [B092]", async () => {
    const key = newId("sevt");
    const input = { duration: 57, steps: 570 };
    const running = call(kit.service, session, "trigger-long-running-operation", input, key);
    await upstream.journal.waitFor((entry) => JSON.stringify(entry.arguments) === JSON.stringify(input));
    const [own, others] = await Promise.all(
      [kit.service, other].map(async (service) =>
        (await at(service)).watchCall({ key }, metadata.get(session)),
      ),
    );
    assert.equal((await others?.next())?.done, true);
    assert.equal((await own?.next())?.done, false);
    await (await at(kit.service)).cancelCall({ key }, metadata.get(session));
    assert.equal((await running)?.outcome, ToolOutcome.TOOL_OUTCOME_CANCELLED);
    for await (const { progress } of own ?? []) assert.ok(progress > 0);
  });

  it("give up a call that the other one runs", async () => {
    const key = newId("sevt");
    const input = { duration: 58, steps: 58 };
    const running = call(kit.service, session, "trigger-long-running-operation", input, key);
    await upstream.journal.waitFor((entry) => JSON.stringify(entry.arguments) === JSON.stringify(input));
    await (await at(other)).cancelCall({ key }, metadata.get(session));
    assert.equal((await running)?.outcome, ToolOutcome.TOOL_OUTCOME_CANCELLED);
  });

  it("write one log without gaps, however they race", async () => {
    const work = Array.from({ length: 40 }, (_, i) =>
      call(i % 2 ? other : kit.service, session, "echo", { message: String(i) }),
    );
    await Promise.all(work);
    const [row] = await kit.sql(
      "ganglion_owner",
      "SELECT count(*)::int AS n, min(sequence)::int AS low, max(sequence)::int AS high, (SELECT sequence::int FROM proxy.audit_head) AS head FROM proxy.audit_records",
    );
    assert.deepEqual({ low: row.low, high: row.high, head: row.head }, { low: 1, high: row.n, head: row.n });
  });
});
