import assert from "node:assert/strict";
import { mock } from "node:test";
import type { CredentialRow } from "../../../services/mcp-proxy/domain/access.ts";
import { createSecretReader } from "../../../services/mcp-proxy/vault/secret-reader.ts";
import type { SessionTokens } from "../../../services/mcp-proxy/vault/session-tokens.ts";
import type { VaultClient } from "../../../services/mcp-proxy/vault/vault-client.ts";
import { VaultFailure } from "../../../services/mcp-proxy/vault/vault-failure.ts";

const OWNER = { sessionId: "sesn_1", workspaceId: "wrkspc_default", epoch: 1n, tokenId: "tok_1" };
const CREDENTIAL: CredentialRow = {
  ...{ credentialId: "vcrd_1", vaultId: "vlt_1", kind: "static_bearer", url: "https://mcp.test" },
  ...{ secretName: "", config: {}, version: 1n, mac: Buffer.alloc(32) },
};

describe("the reader of secrets", () => {
  let reads: string[];
  let forgotten: string[];
  let play: () => object;
  const unused = () => assert.fail("not asked for");
  const client: VaultClient = {
    read: async (_path, token) => {
      reads.push(token);
      return play();
    },
    ...{ write: unused, patch: unused, remove: unused, close: async () => {} },
  };
  const tokens: SessionTokens = {
    get: async () => ({ token: `token-${forgotten.length + 1}`, accessorHmac: "" }),
    forget: (_owner, _vaultId, token) => void forgotten.push(token),
    drop: () => {},
  };
  const reader = () => createSecretReader(client, "ganglion", tokens);
  const secret = (value: string) => ({
    request_id: "r",
    data: { data: { secret: value }, metadata: { version: 1 } },
  });
  const reasonOf = async (work: Promise<unknown>) => {
    const error = await work.then(unused, (thrown: unknown) => thrown as { code: string; reason: string });
    return [error.code, error.reason];
  };

  beforeEach(() => {
    reads = [];
    forgotten = [];
    play = () => secret("first-secret");
  });
  afterEach(() => mock.timers.reset());

  it("serves nothing that was read more than five seconds ago [B122]", async () => {
    mock.timers.enable({ apis: ["setTimeout", "Date"] });
    const { read } = reader();
    assert.equal((await read(OWNER, CREDENTIAL)).value, "first-secret");
    play = () => secret("second-secret");
    mock.timers.tick(4999);
    assert.equal((await read(OWNER, CREDENTIAL)).value, "first-secret");
    mock.timers.tick(2);
    assert.equal((await read(OWNER, CREDENTIAL)).value, "second-secret");
    assert.equal(reads.length, 2);
  });

  it("reads another version, another session and a session that was dropped at once", async () => {
    const { read, drop } = reader();
    await read(OWNER, CREDENTIAL);
    await read(OWNER, { ...CREDENTIAL, version: 2n });
    await read({ ...OWNER, sessionId: "sesn_2" }, CREDENTIAL);
    await read(OWNER, CREDENTIAL);
    assert.equal(reads.length, 3);
    drop("sesn_1");
    await read(OWNER, CREDENTIAL);
    assert.equal(reads.length, 4);
  });

  it("asks once more with a new token when Vault refuses the one it has, and only once [B122]", async () => {
    let refusals = 1;
    play = () => {
      if (refusals-- > 0) throw new VaultFailure("denied", 403);
      return secret("first-secret");
    };
    assert.equal((await reader().read(OWNER, CREDENTIAL)).value, "first-secret");
    assert.deepEqual(reads, ["token-1", "token-2"]);
    refusals = 9;
    // A refusal of our own token is our trouble, never the session's lack of a right.
    assert.deepEqual(await reasonOf(reader().read(OWNER, CREDENTIAL)), ["UNAVAILABLE", "VAULT_UNAVAILABLE"]);
    assert.equal(reads.length, 4);
  });

  for (const [what, kind] of [
    ["sealed", "sealed"],
    ["on standby, or limiting its rate", "standby"],
    ["silent", "timeout"],
    ["away", "unreachable"],
    ["without an audit device that takes a record", "server"],
    ["answering nonsense", "malformed"],
    ["redirecting", "redirect"],
    ["taking our path for another engine's", "misrouted"],
  ] as const) {
    it(`says UNAVAILABLE when Vault is ${what}, keeps nothing of that, and is well as soon as Vault is [A116]`, async () => {
      const { read } = reader();
      play = () => {
        throw new VaultFailure(kind);
      };
      assert.deepEqual(await reasonOf(read(OWNER, CREDENTIAL)), ["UNAVAILABLE", "VAULT_UNAVAILABLE"]);
      play = () => secret("first-secret");
      assert.equal((await read(OWNER, CREDENTIAL)).value, "first-secret");
    });
  }

  for (const [what, answer] of [
    ["is not there", new VaultFailure("not_found", 404)],
    ["was deleted", { data: { data: null, metadata: { version: 1 } } }],
    ["has no field of that name", { data: { data: { token: "x" }, metadata: { version: 1 } } }],
    ["is empty", { data: { data: { secret: "" }, metadata: { version: 1 } } }],
    ["came without data", {}],
  ] as const) {
    it(`says CRED_MISSING when the value ${what} [A116]`, async () => {
      play = () => {
        if (answer instanceof Error) throw answer;
        return answer;
      };
      assert.deepEqual(await reasonOf(reader().read(OWNER, CREDENTIAL)), [
        "FAILED_PRECONDITION",
        "CRED_MISSING",
      ]);
    });
  }

  it("says CRED_MALFORMED, and not what it is, when the value cannot be a header [A027]", async () => {
    play = () => secret("two\nlines-of-a-secret");
    assert.deepEqual(await reasonOf(reader().read(OWNER, CREDENTIAL)), [
      "FAILED_PRECONDITION",
      "CRED_MALFORMED",
    ]);
  });
});
