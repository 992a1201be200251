import assert from "node:assert/strict";
import { mkdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { createSessionToken, loginAsProxy, newSecret, newVaultId } from "./kit/logins.ts";
import { rawCall } from "./kit/raw-call.ts";
import { type SharedVault, SLOW_MS, sharedVault } from "./kit/test-vault.ts";

// biome-ignore lint/suspicious/noExplicitAny: records of any shape
type AuditRecord = any;

describe("Vault's audit file", () => {
  let vault: SharedVault;
  let file: string;

  before(async function () {
    this.timeout(SLOW_MS);
    vault = await sharedVault();
    if (vault.auditFile === undefined) return this.skip();
    file = vault.auditFile;
  });

  const text = () => readFileSync(file, "utf8");
  const records = (path: string): AuditRecord[] =>
    text()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as AuditRecord)
      .filter((record) => record.request.path === path);

  it("names the session that read a credential, and shows neither secret nor token [L5]", async () => {
    const proxy = (await loginAsProxy(vault)).client_token;
    const vaultId = newVaultId();
    const secret = newSecret();
    const path = `ganglion/data/vaults/${vaultId}/vcrd_1`;
    const json = { data: { secret } };
    await rawCall(vault.address, "POST", `/v1/${path}`, { token: proxy, json });
    const session = await createSessionToken(vault.http, proxy, vaultId, "sesn_audited");
    const read = await rawCall(vault.address, "GET", `/v1/${path}`, { token: session.client_token });
    assert.equal(read.status, 200);
    const [asked, answered] = records(path).filter((record) => record.request.id === read.body.request_id);
    assert.deepEqual([asked?.type, answered?.type], ["request", "response"]);
    for (const record of [asked, answered]) {
      assert.deepEqual(record.auth.metadata, { session: "sesn_audited" });
      assert.deepEqual(record.auth.policies, ["ganglion-session"]);
      assert.equal(record.auth.policy_results.allowed, true);
      assert.equal(record.auth.entity_id, session.entity_id);
      assert.equal(record.request.operation, "read");
      assert.match(record.auth.accessor, /^hmac-sha256:[0-9a-f]{64}$/);
      assert.equal(record.request.mount_type, "kv");
    }
    assert.match(answered.response.data.data.secret, /^hmac-sha256:[0-9a-f]{64}$/);
    const written = text();
    for (const value of [secret, session.client_token, session.accessor, proxy]) {
      assert.ok(!written.includes(value));
    }
    assert.equal(statSync(file).mode & 0o077, 0);
  });

  it("the hash of a value can be asked for, to find it", async () => {
    const proxy = (await loginAsProxy(vault)).client_token;
    const session = await createSessionToken(vault.http, proxy, newVaultId());
    const reply = await rawCall(vault.address, "POST", "/v1/sys/audit-hash/ganglion", {
      token: vault.rootToken,
      json: { input: session.accessor },
    });
    assert.equal(reply.status, 200);
    const { hash } = reply.body.data ?? reply.body;
    const made = records("auth/token/create/ganglion-session").filter(
      (record) => record.response?.auth?.accessor === hash,
    );
    assert.equal(made.length, 1);
  });

  it("has what was refused, and why", async () => {
    const proxy = (await loginAsProxy(vault)).client_token;
    const path = `ganglion/data/vaults/${newVaultId()}/vcrd_1`;
    assert.equal((await rawCall(vault.address, "GET", `/v1/${path}`, { token: proxy })).status, 403);
    const [record] = records(path);
    assert.equal(record.auth.policy_results.allowed, false);
    assert.match(record.error, /permission denied/);
  });

  it("that cannot be written stops everything, and nothing is done [A126]", async function () {
    if (vault.kind !== "dev-vault") return this.skip();
    const path = `ganglion/data/tests/${newVaultId()}`;
    const call = (method: string, json?: unknown) =>
      rawCall(vault.address, method, `/v1/${path}`, { token: vault.rootToken, json });
    assert.equal((await call("POST", { data: { n: 1 } })).status, 200);
    renameSync(file, `${file}.aside`);
    mkdirSync(file);
    try {
      for (const reply of [await call("GET"), await call("POST", { data: { n: 2 } })]) {
        assert.equal(reply.status, 500);
        assert.match(reply.body.errors[0], /internal error/);
        assert.equal(reply.body.data, undefined);
      }
      // What says whether the vault lives is not audited.
      assert.equal((await rawCall(vault.address, "GET", "/v1/sys/health")).status, 200);
    } finally {
      rmSync(file, { recursive: true });
      renameSync(`${file}.aside`, file);
    }
    const after = await call("GET");
    assert.equal(after.status, 200);
    assert.equal(after.body.data.metadata.version, 1);
  });
});
