import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { startMcpUpstream, type TestMcpUpstream } from "../../kit/mcp-upstream.ts";
import type { RunningService } from "../../kit/start-service.ts";
import { becomesActive, SLOW_MS } from "../vault/kit/test-vault.ts";
import { type BoundSession, briefly, failureOf, NO_CHANGE, ProxyKit } from "./proxy-kit.ts";

describe("mcp-proxy and the states of Vault", function () {
  this.timeout(SLOW_MS);
  let kit: ProxyKit;
  let upstream: TestMcpUpstream;

  before(async () => {
    upstream = await startMcpUpstream();
    kit = await ProxyKit.start({ GANGLION_PROXY_ALLOW_HTTP_HOSTS: new URL(upstream.url).host });
  });
  after(async () => {
    await kit?.stop();
    await upstream?.stop();
  });

  const bound = () => kit.bound({ servers: [{ name: "demo", url: upstream.url, secret: upstream.token }] });
  const list = async (of: BoundSession) =>
    (await kit.mcp()).listTools(
      { mcpServerName: "demo" },
      { metadata: { "ganglion-session-token": of.token } },
    );
  const asRoot = (method: "GET" | "PUT" | "POST" | "DELETE", path: string, body?: object) =>
    kit.vault.http.call(method, path, { token: kit.rootToken, ...(body ? { body: { ...body } } : {}) });
  const credentialOf = async ({ vaultId }: BoundSession) => {
    const asked = { vaultId, pageSize: 0, pageToken: "", includeArchived: false };
    return (await (await kit.vaults()).listCredentials(asked)).credentials[0]?.id ?? "";
  };

  /** The call is refused, nothing reaches the upstream, and the records say so; afterwards it works by itself. */
  const expectRefusal = async (
    fault: () => Promise<unknown> | unknown,
    repair: () => Promise<unknown> | unknown,
  ) => {
    const session = await bound();
    const before = (await upstream.journal.entries()).length;
    await fault();
    try {
      const startedAt = Date.now();
      const error = await failureOf(list(session));
      assert.equal(error.code, "UNAVAILABLE");
      assert.equal(error.reason, "VAULT_UNAVAILABLE");
      assert.ok(Date.now() - startedAt < 10_000);
    } finally {
      await repair();
    }
    assert.equal((await upstream.journal.entries()).length, before);
    const records = briefly(await kit.records(session.sessionId));
    assert.deepEqual(records, ["decision allow", "outcome vault_unavailable"]);
    await list(session);
    assert.equal(kit.service.process.exitCode, null);
  };

  it("hangs: UNAVAILABLE in time, and well again when it goes on [A116] [M15]", () =>
    expectRefusal(
      () => process.kill(kit.vault.pid(), "SIGSTOP"),
      () => process.kill(kit.vault.pid(), "SIGCONT"),
    ));

  it("is killed, and starts again sealed: UNAVAILABLE until somebody opens it [A116]", () =>
    expectRefusal(
      () => kit.vault.restart("SIGKILL"),
      async () => {
        await kit.vault.http.call("PUT", "sys/unseal", { body: { key: kit.unsealKey } });
        await becomesActive(kit.vault.http);
      },
    ));

  it("has no audit device that takes a record: UNAVAILABLE, nothing read [A126]", async function () {
    if (kit.vault.kind !== "dev-vault") return this.skip();
    const file = kit.vault.auditFile;
    await expectRefusal(
      () => {
        renameSync(file, `${file}.aside`);
        mkdirSync(file);
      },
      () => {
        rmSync(file, { recursive: true });
        renameSync(`${file}.aside`, file);
      },
    );
  });

  it("has lost a credential: CRED_MISSING, and the records say so [A116]", async () => {
    const session = await bound();
    const path = `vaults/${session.vaultId}/${await credentialOf(session)}`;
    const before = (await upstream.journal.entries()).length;
    await asRoot("DELETE", `ganglion/data/${path}`);
    const error = await failureOf(list(session));
    assert.equal(error.code, "FAILED_PRECONDITION");
    assert.equal(error.reason, "CRED_MISSING");
    assert.equal((await upstream.journal.entries()).length, before);
    const records = briefly(await kit.records(session.sessionId));
    assert.deepEqual(records, ["decision allow", "outcome cred_missing"]);
  });

  it("has revoked a session's token: one more read with a new one, and the session notices nothing [B122]", async () => {
    const session = await bound();
    await list(session);
    const tokensOf = () =>
      kit.sql("ganglion_owner", "SELECT accessor FROM proxy.vault_tokens WHERE session_id = $1", [
        session.sessionId,
      ]);
    const [token] = await tokensOf();
    await asRoot("POST", "auth/token/revoke-accessor", { accessor: token.accessor });
    // A new version is read at once, without waiting for the one in memory to get old.
    const credentialId = await credentialOf(session);
    const secret = await kit.seal(upstream.token, session.vaultId, upstream.url);
    await (await kit.vaults()).updateCredential({
      ...{ ...NO_CHANGE, vaultId: session.vaultId, credentialId, secret },
    });
    await list(session);
    assert.equal((await tokensOf()).length, 2);
  });

  it("has revoked the proxy's login: the first call that needs it ends the process for a new one [B120]", async () => {
    const own = await loginAccessors();
    for (const accessor of own) await asRoot("POST", "auth/token/revoke-accessor", { accessor });
    const error = await failureOf(bound());
    assert.equal(error.code, "UNAVAILABLE");
    assert.equal(error.reason, "VAULT_UNAVAILABLE");
    assert.equal(await kit.service.exit, 75);
    assert.match(kit.service.output(), /the Vault login is lost/);
    await kit.restartProxy();
    await list(await bound());
  });

  it("is told about at the start when no audit device is on and the login may see that [A126]", async function () {
    if (kit.vault.kind !== "dev-vault") return this.skip();
    const policy = 'path "sys/audit" { capabilities = ["read", "sudo"] }';
    const role = "auth/approle/role/ganglion-proxy";
    await asRoot("PUT", "sys/policies/acl/sees-audit", { policy });
    await asRoot("POST", role, { token_policies: ["ganglion-proxy", "sees-audit"] });
    const started: RunningService[] = [];
    const warned = async () => {
      const service = await kit.startProxy({
        GANGLION_INSTANCE: `mcp-proxy-${randomBytes(3).toString("hex")}`,
      });
      started.push(service);
      return service.output().includes("Vault has no audit device on");
    };
    try {
      assert.equal(await warned(), false);
      await asRoot("DELETE", "sys/audit/ganglion");
      assert.equal(await warned(), true);
      // Without the right it cannot tell, and starts all the same.
      await asRoot("POST", role, { token_policies: ["ganglion-proxy"] });
      assert.equal(await warned(), false);
    } finally {
      for (const service of started) await service.stop();
    }
  });

  /** Accessors of all logins with the AppRole. */
  async function loginAccessors(): Promise<string[]> {
    const { body } = await asRoot("GET", "auth/token/accessors?list=true");
    const own: string[] = [];
    for (const accessor of (body.data as { keys: string[] }).keys) {
      const found = await asRoot("POST", "auth/token/lookup-accessor", { accessor });
      const { policies } = found.body.data as { policies: string[] };
      if (policies.includes("ganglion-proxy")) own.push(accessor);
    }
    return own;
  }
});
