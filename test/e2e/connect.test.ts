import assert from "node:assert/strict";
import { setTimeout as pass } from "node:timers/promises";
import { proveSecrecy } from "../demo/prove-secrecy.ts";
import { bodiesOf, checkLog, textOf } from "../kit/check-log.ts";
import { logText } from "../kit/log-text.ts";
import type { CliResult } from "../kit/mesh.ts";
import { startOauthServer, type TestOauthServer } from "../kit/oauth-server.ts";
import { NeedleIndex } from "../kit/secret-scan/needles.ts";
import { spareAddress, wholeStage } from "../kit/shared-stage.ts";
import { type Stage, script } from "../kit/stage.ts";
import { walkThrough } from "../kit/walk-through.ts";

/** Life of the first access token: about as long as what is done with it. */
const SHORT_S = 5;
/** Those through which a person or an agent comes to a credential; all others are searched with the canaries. */
const SEARCHED = ["gateway-1", "session-1", "harness-1", "harness-2", "sandbox-1", "mcp-proxy-1"];
const WHOAMI = "mcp__calendar__whoami";

describe("ganglion vault connect, over a whole mesh", function () {
  this.timeout(90_000);
  let stage: Stage;
  let server: TestOauthServer;
  let vaultId: string;
  let credentialId: string;
  let sessionId: string;
  /** All that the command line has said. */
  let said = "";

  before(async function () {
    stage = await wholeStage(this);
    server = await startOauthServer(spareAddress());
  });
  after(() => server?.stop());

  const cli = async (args: string[], see?: (line: string) => unknown): Promise<string> => {
    const { code, stdout, stderr }: CliResult = await stage.mesh.cli(args, undefined, see);
    said += stdout + stderr;
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const show = async (): Promise<{ mcpServerUrl: string; expiresAt: string }> =>
    JSON.parse(await cli(["vault", "show", vaultId, credentialId, "--json"])).mcpOauth;
  const refreshes = async () =>
    (await server.grants()).filter((grant) => grant.startsWith("refresh_token")).length;
  /** Lets an agent ask the server who it is; gives the request's id in the audit log. */
  const ask = async (): Promise<string> => {
    const events = await stage.turn(sessionId, script([{ calls: [{ name: WHOAMI, input: {} }] }]));
    const [result] = bodiesOf(events, "agentMcpToolResult");
    const seen = [result?.isError, textOf(result?.content ?? [])];
    assert.deepEqual(seen, [false, "hello from whoami"]);
    return result?.proxyRequestId ?? "";
  };

  it("takes a person from a server's address through the browser to a credential", async () => {
    await server.set({ access_ttl_s: String(SHORT_S) });
    vaultId = (JSON.parse(await cli(["vault", "create", "calendar", "--json"])) as { id: string }).id;
    let browsing: Promise<string> | undefined;
    const browse = async (url: string): Promise<string> => {
      const redirectUri = new URL(url).searchParams.get("redirect_uri") ?? "";
      const answer = await walkThrough(url, redirectUri);
      return (await fetch(`${redirectUri}?${answer}`)).text();
    };
    const out = await cli(["vault", "connect", server.url, "--vault", vaultId], (line) => {
      if (line.startsWith("http")) browsing = browse(line);
    });
    assert.match((await browsing) ?? "", /You are connected/);
    credentialId = /connected: credential (vcrd_\w+) for /.exec(out)?.[1] ?? "";
    assert.equal((await show()).mcpServerUrl, server.url);
  });

  it("whose sessions call the server, before and after the access token had to be renewed", async () => {
    const agent = await stage.sdk.beta.agents.create({
      name: "keeps a calendar",
      model: "claude-opus-5-5",
      mcp_servers: [{ type: "url", name: "calendar", url: server.url }],
      tools: [
        {
          type: "mcp_toolset",
          mcp_server_name: "calendar",
          default_config: { enabled: true, permission_policy: { type: "always_allow" } },
        },
      ],
    });
    const session = await stage.sdk.beta.sessions.create({
      agent: agent.id,
      environment_id: stage.environmentId,
      vault_ids: [vaultId],
    });
    sessionId = session.id;
    const first = await ask();
    // On a slow machine it may have been renewed by now: what is there is waited for.
    const before = await refreshes();
    const expiresAt = Date.parse((await show()).expiresAt);
    assert.ok(expiresAt > 0);
    while (Date.now() <= expiresAt) await pass(expiresAt - Date.now() + 1);
    await server.set({ access_ttl_s: "3600" });
    const second = await ask();
    assert.equal(await refreshes(), before + 1);
    checkLog(await stage.log(sessionId));

    for (const requestId of [first, second]) {
      const way = await cli(["audit", "explain", requestId]);
      assert.ok(way.includes(`${credentialId}, version `), way);
      assert.ok(way.includes(sessionId) && way.includes(new URL(server.url).host), way);
    }
    const used = (await cli(["audit", "who-used", credentialId, "--json"]))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, string>)
      .filter((use) => use.session_id === sessionId);
    for (const requestId of [first, second])
      assert.ok(used.some((use) => use.request_id === requestId && use.operation === "mcp_call_tool"));
    assert.ok(used.some(({ operation }) => operation === "oauth.refresh"));
  });

  it("and whose tokens are in no process on the way but mcp-proxy, in no file, output or event [L5]", async function () {
    // Gigabytes are read.
    this.timeout(600_000);
    const tokens = await server.tokens();
    assert.ok(tokens.length >= 4, "two access tokens and two refresh tokens");
    const secrets = tokens.map((secret, n) => ({ name: `token ${n}`, secret }));
    const pids = Object.fromEntries(SEARCHED.map((name) => [name, stage.mesh.pid(name)]));
    const proof = proveSecrecy({
      secrets,
      pids: { ...pids, "oauth-server": server.process.pid as number },
      mayHold: new Set(["mcp-proxy-1", "oauth-server"]),
      heapControl: { text: sessionId, names: ["session-1", "gateway-1", "mcp-proxy-1"] },
      state: stage.mesh.files.state,
      filesMayHold: [],
    });
    const wrong = proof.processes.filter((one) => !one.controlFound || (!one.mayHold && one.findings.length));
    assert.deepEqual(wrong, []);
    assert.deepEqual(proof.files.findings, []);
    assert.deepEqual(proof.unseen, [], "what is found nowhere proves nothing");
    const holders = proof.processes.filter(({ findings }) => findings.length > 0).map(({ name }) => name);
    assert.ok(holders.includes("mcp-proxy-1"), "the control: who uses a token has it");
    assert.ok(proof.holds);

    const log = logText(await stage.log(sessionId));
    assert.ok(log.includes("hello from whoami"), "the control: what came by MCP is in it");
    const index = new NeedleIndex(secrets);
    for (const told of [said, server.output(), log]) assert.deepEqual(index.find(Buffer.from(told)), []);
  });
});
