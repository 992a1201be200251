import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import type { AccessRow } from "../../../services/mcp-proxy/domain/access.ts";
import { parseDestination } from "../../../services/mcp-proxy/domain/canonical-url.ts";
import type { McpTarget } from "../../../services/mcp-proxy/domain/mcp-caller.ts";
import { createMcpCaller } from "../../../services/mcp-proxy/upstream/mcp-caller.ts";
import { createPools } from "../../../services/mcp-proxy/upstream/pools.ts";
import { unseenTraffic } from "../../kit/unseen-traffic.ts";
import { answer, HostileMcp } from "./hostile-mcp.ts";

const ROUNDS = 1000;

describe("two sessions at one MCP server", () => {
  let upstream: HostileMcp;

  before(async () => {
    upstream = await HostileMcp.start();
  });
  after(() => upstream?.stop());

  it("each gets its own answer in 1,000 interleavings, though their requests have the same ids [A042] [B095]", async function () {
    this.timeout(120_000);
    const pools = createPools({ connectMs: 5000, headersMs: 20_000, bodyIdleMs: 20_000 }, undefined);
    const mcp = createMcpCaller(pools);
    const ids = new Map<string, unknown[]>();
    upstream.misbehave = (rpc, request, response) => {
      if (rpc.method !== "tools/call") return false;
      const { params = {} } = rpc;
      const { who, n } = params.arguments as { who: string; n: number };
      const key = String(request.headers["mcp-session-id"]);
      ids.set(key, [...(ids.get(key) ?? []), rpc.id]);
      const content = [{ type: "text", text: `${who} ${n}` }];
      // A is slow when B is fast, and the other way about, and now and then both are as fast as they can be.
      const ms = n % 3 === 2 ? 0 : (n % 3 === 0) === (who === "a") ? 2 : 0;
      if (ms === 0) answer(response, rpc, { content });
      else void pause(ms).then(() => answer(response, rpc, { content }));
      return true;
    };
    const destination = parseDestination(upstream.url);
    assert.ok(destination);
    const targetOf = (sessionId: string): McpTarget => ({
      access: { sessionId } as AccessRow,
      serverName: "demo",
      destination,
      address: { address: "127.0.0.1", family: 4, class: "loopback" },
      credential: undefined,
      secret: undefined,
      met: () => {},
      traffic: unseenTraffic(),
    });
    const ask = async (who: string, n: number) => {
      const call = { name: "one", inputJson: JSON.stringify({ who, n }), silenceMs: 20_000, totalMs: 20_000 };
      const admit = async () => {};
      const outcome = await mcp.callTool(
        targetOf(who),
        { ...call, admit, onProgress: () => {} },
        new AbortController().signal,
      );
      assert.ok(outcome.ok);
      assert.deepEqual(JSON.parse(outcome.value.content[0]?.json ?? ""), {
        type: "text",
        text: `${who} ${n}`,
      });
    };
    try {
      for (let n = 0; n < ROUNDS; n += 1) await Promise.all([ask("a", n), ask("b", n)]);
    } finally {
      await mcp.close();
      await pools.close();
    }
    const [a, b] = [...ids.values()];
    assert.equal(ids.size, 2);
    assert.ok(
      a?.some((id) => b?.includes(id)),
      "the ids never met",
    );
    for (const seen of ids.values()) assert.equal(new Set(seen).size, ROUNDS);
  });
});
