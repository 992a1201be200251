import assert from "node:assert/strict";
import createClient from "node-vault";
import { wrapSecretId } from "../../../services/cli/up/vault-bootstrap.ts";
import { createSessionToken, loginAsProxy, newSecret, newVaultId } from "./kit/logins.ts";
import { type SharedVault, SLOW_MS, sharedVault } from "./kit/test-vault.ts";

/** What node-vault throws for a status that is not 2xx. */
interface NodeVaultError extends Error {
  // biome-ignore lint/suspicious/noExplicitAny: bodies of any shape
  readonly response?: { readonly statusCode: number; readonly body: any };
}

describe("node-vault against it", () => {
  let vault: SharedVault;

  before(async function () {
    this.timeout(SLOW_MS);
    vault = await sharedVault();
  });

  const client = (token?: string) =>
    createClient({
      endpoint: vault.address.addr,
      requestOptions: { ca: vault.address.caPem },
      ...(token === undefined ? { noCustomHTTPVerbs: true } : { token, noCustomHTTPVerbs: true }),
      debug: () => {},
    } as Parameters<typeof createClient>[0]);

  const failure = async (work: Promise<unknown>): Promise<NodeVaultError> =>
    work.then(
      () => assert.fail("was not refused"),
      (cause: unknown) => cause as NodeVaultError,
    );

  it("unwraps a login, logs in, writes, and reads as a session", async () => {
    const login = await wrapSecretId(vault.http, vault.supervisorToken);
    const opened = await client(login.wrapped_secret_id).unwrap();
    const proxy = client();
    const result = await proxy.approleLogin({ role_id: login.role_id, secret_id: opened.data.secret_id });
    assert.equal(result.auth.renewable, true);
    const vaultId = newVaultId();
    const path = `ganglion/data/vaults/${vaultId}/vcrd_1`;
    const secret = newSecret();
    const written = await proxy.write(path, { data: { secret }, options: { cas: 0 } });
    assert.equal(written.data.version, 1);
    const made = await proxy.write("auth/token/create/ganglion-session", {
      entity_alias: vaultId,
      ttl: "15m",
      meta: { session: "sesn_1" },
    });
    const session = client(made.auth.client_token);
    const read = await session.read(path);
    assert.equal(read.data.data.secret, secret);
    const denied = await failure(session.read(`ganglion/data/vaults/${newVaultId()}/vcrd_1`));
    assert.equal(denied.response?.statusCode, 403);
    await proxy.write("auth/token/revoke-accessor", { accessor: made.auth.accessor });
    assert.equal((await failure(session.read(path))).response?.statusCode, 403);
    await proxy.tokenRenewSelf();
    await proxy.tokenRevokeSelf();
    assert.equal((await failure(proxy.tokenLookupSelf())).response?.statusCode, 403);
  });

  it("tells a missing secret from a wrong path [B124] [M16]", async () => {
    const vaultId = newVaultId();
    const root = client(vault.rootToken);
    const missing = await failure(root.read(`ganglion/data/tests/${vaultId}`));
    assert.equal(missing.response?.statusCode, 404);
    assert.equal(missing.response?.body.warnings, undefined);
    const wrong = await failure(root.read(`ganglion/tests/${vaultId}`));
    assert.equal(wrong.response?.statusCode, 404);
    assert.match(wrong.response?.body.warnings[0], /versioned K\/V/);
  });

  it("sees a deleted secret as a 404 with data null [A116]", async () => {
    const path = `ganglion/data/tests/${newVaultId()}`;
    const root = client(vault.rootToken);
    await root.write(path, { data: { a: 1 } });
    await root.delete(path);
    const gone = await failure(root.read(path));
    assert.equal(gone.response?.statusCode, 404);
    assert.equal(gone.response?.body.data.data, null);
  });

  it("asks for its own rights, which the start-up check relies on [A124]", async () => {
    const proxy = client((await loginAsProxy(vault)).client_token);
    const paths = ["ganglion/data/vaults/vlt_x/vcrd_x", "sys/policies/acl/x", "ganglion/data/proxy/mac-key"];
    const { data } = await proxy.write("sys/capabilities-self", { paths });
    assert.deepEqual(data[paths[0] as string].sort(), ["create", "patch", "update"]);
    assert.deepEqual(data[paths[1] as string], ["deny"]);
    assert.deepEqual(data[paths[2] as string].sort(), ["create", "read"]);
  });

  it("reads the states [B117]", async () => {
    const status = await client().status();
    assert.equal(status.sealed, false);
    assert.equal((await client().initialized()).initialized, true);
    const health = await client().health();
    assert.equal(health.initialized, true);
  });

  it("cannot use a session's token that has ended", async () => {
    const proxy = (await loginAsProxy(vault)).client_token;
    const made = await createSessionToken(vault.http, proxy, newVaultId());
    await vault.http.call("POST", "auth/token/revoke", {
      token: vault.rootToken,
      body: { token: made.client_token },
    });
    const error = await failure(client(made.client_token).tokenLookupSelf());
    assert.equal(error.response?.statusCode, 403);
  });
});
