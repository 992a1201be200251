import { fork } from "node:child_process";
import { once } from "node:events";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import pg from "pg";
import { newId } from "../../../services/common/ids/new-id.ts";
import { createLogger } from "../../../services/common/log/create-logger.ts";
import type { CredentialRow } from "../../../services/mcp-proxy/domain/access.ts";
import { createAuditMacs } from "../../../services/mcp-proxy/domain/audit-macs.ts";
import { createVaultTokenStore } from "../../../services/mcp-proxy/store/vault-token-store.ts";
import { openVault } from "../../../services/mcp-proxy/vault/open-vault.ts";
import { createSecretReader } from "../../../services/mcp-proxy/vault/secret-reader.ts";
import { createSessionTokens } from "../../../services/mcp-proxy/vault/session-tokens.ts";
import { type BoundSession, ProxyKit, WORKSPACE } from "../../contract/mcp-proxy/proxy-kit.ts";
import type { CleanUps } from "../report/clean-ups.ts";
import { alone, reportQuantiles } from "../report/report-quantiles.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { median, type Pair, ratios } from "../report/statistics.ts";

const WARM_UP = 500;
const PAIRS = 200;
const READS = 100;
const MODEL = "claude-test";
const SECRET = "bench-token-0123456789";
const SERVER = new URL("./mcp-server.ts", import.meta.url);

/** mcp-proxy with a session, and the server that it calls and that can also be called directly. */
export interface CallStand {
  readonly kit: ProxyKit;
  readonly origin: string;
  readonly session: BoundSession;
}

/** startCallStand starts PostgreSQL, the development vault, mcp-proxy and the server. */
export async function startCallStand(cleanUps: CleanUps, say: (line: string) => void): Promise<CallStand> {
  say("starting mcp-proxy and an MCP server");
  const server = fork(SERVER);
  cleanUps.add(() => void server.kill("SIGKILL"));
  const [port] = (await once(server, "message")) as [number];
  const origin = `http://127.0.0.1:${port}`;
  const kit = await ProxyKit.start({
    GANGLION_PROXY_ALLOW_HTTP_HOSTS: `127.0.0.1:${port}`,
    GANGLION_SCRIPTED_MODEL_URL: origin,
  });
  cleanUps.add(() => kit.stop());
  await kit.storeModelKey(origin, SECRET);
  const servers = [{ name: "bench", url: `${origin}/mcp`, secret: SECRET }];
  const session = await kit.bound({ servers, models: [MODEL] });
  return { kit, origin, session };
}

/** CallTool over gRPC and mutual TLS with its audit commits, held against the MCP SDK straight to the same server. */
export const mcpCallBenchmark: Benchmark<CallStand> = {
  figures: ["mcp_call_added_ms_p50", "mcp_call_20ms_ratio_p50"],
  async run({ kit, origin, session }, { report }) {
    const mcp = await kit.mcp();
    const options = { metadata: { "ganglion-session-token": session.token } };
    await mcp.listTools({ mcpServerName: "bench" }, options);
    const client = new Client({ name: "bench", version: "1" }, { capabilities: {} });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`)));
    const inputJson = Buffer.from('{"text":"hello"}');
    const ours = (name: string) =>
      mcp.callTool(
        {
          ...{ mcpServerName: "bench", name, inputJson, key: newId("sevt") },
          ...{ timeout: undefined, acknowledgedKeys: [] },
        },
        options,
      );
    const direct = (name: string) => client.callTool({ name, arguments: { text: "hello" } });
    const now = await measure(
      () => ours("now"),
      () => direct("now"),
    );
    const slow = await measure(
      () => ours("slow"),
      () => direct("slow"),
    );
    await client.close();
    reportAdded(report, "mcp_call_added_ms_p50", now);
    const value = median(ratios(slow));
    report({
      name: "mcp_call_20ms_ratio_p50",
      value,
      unit: "ratio",
      baseline: null,
      ratio: value,
      n: slow.length,
    });
  },
};

/** POST /v1/messages through the model door, held against the same request straight to the same server. */
export const modelRouteBenchmark: Benchmark<CallStand> = {
  figures: ["model_route_added_ms_p50"],
  async run({ kit, origin, session }, { report }) {
    const body = JSON.stringify({
      model: MODEL,
      max_tokens: 10,
      messages: [{ role: "user", content: "Hello." }],
    });
    const headers = { "content-type": "application/json", "anthropic-version": "2023-06-01" };
    const door = await kit.door();
    const post = async (fetching: Promise<Response>) => {
      const answer = await fetching;
      await answer.text();
      if (!answer.ok) throw new Error(`the model answered ${answer.status}`);
    };
    const authorized = { ...headers, authorization: `Bearer ${session.token}` };
    const url = `https://${kit.doorAddress()}/v1/messages`;
    const pairs = await measure(
      () => post(door.fetch(url, { method: "POST", headers: authorized, body })),
      () => post(fetch(`${origin}/v1/messages`, { method: "POST", headers, body })),
    );
    reportAdded(report, "model_route_added_ms_p50", pairs);
  },
};

/** A credential read from Vault with the session's token, and once more from memory. */
export const credentialBenchmark: Benchmark<CallStand> = {
  figures: ["credential_cold_ms_p50", "credential_cached_ms_p50"],
  async run({ kit, session }, { report }) {
    const { vault } = await kit.bootstrap();
    const opened = await openVault(
      vault,
      createLogger({ service: "bench", instance: "bench" }, "error"),
      () => {},
    );
    const pool = new pg.Pool({ ...kit.postgres.connection("ganglion_proxy"), max: 2 });
    pool.on("error", () => {});
    const store = createVaultTokenStore(pool, { instance: "mcp-proxy-bench", bootId: "bench" });
    const { client, mount, login } = opened;
    const tokens = createSessionTokens({
      client,
      loginToken: login.token,
      store,
      replica: "mcp-proxy-bench",
      macs: createAuditMacs(opened.auditHmacKey),
    });
    const secrets = createSecretReader(client, mount, tokens);
    const owner = { sessionId: session.sessionId, workspaceId: WORKSPACE, epoch: session.epoch };
    const [row] = await kit.sql(
      "ganglion_owner",
      "SELECT credential_id, vault_id, version FROM proxy.credentials WHERE vault_id = $1",
      [session.vaultId],
    );
    const credential = {
      credentialId: row.credential_id,
      vaultId: row.vault_id,
      version: BigInt(row.version),
    } as CredentialRow;
    const cold: number[] = [];
    const cached: number[] = [];
    await secrets.read(owner, credential);
    for (let n = 0; n < READS; n += 1) {
      secrets.drop(session.sessionId);
      cold.push(await time(() => secrets.read(owner, credential)));
      cached.push(await time(() => secrets.read(owner, credential)));
    }
    login.close();
    await client.close();
    await pool.end();
    reportQuantiles(report, ["credential_cold_ms_p50"], "ms", alone(cold));
    reportQuantiles(report, ["credential_cached_ms_p50"], "ms", alone(cached));
  },
};

function reportAdded(
  report: Parameters<typeof reportQuantiles>[0],
  name: string,
  pairs: readonly Pair[],
): void {
  const value = median(pairs.map(({ ours, baseline }) => ours - baseline));
  const baseline = median(pairs.map((pair) => pair.baseline));
  report({ name, value, unit: "ms", baseline, ratio: null, n: pairs.length });
}

async function measure(ours: () => Promise<unknown>, direct: () => Promise<unknown>): Promise<Pair[]> {
  const pairs: Pair[] = [];
  for (let n = 0; n < WARM_UP + PAIRS; n += 1) {
    const pair = { ours: await time(ours), baseline: await time(direct) };
    if (n >= WARM_UP) pairs.push(pair);
  }
  return pairs;
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}
