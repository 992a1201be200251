import assert from "node:assert/strict";
import type { CredentialRow } from "../../../services/mcp-proxy/domain/access.ts";
import type {
  DocumentStore,
  RenewalClaim,
  Reply,
} from "../../../services/mcp-proxy/domain/oauth/oauth-ports.ts";
import {
  type RenewalDeps,
  renewCredential,
} from "../../../services/mcp-proxy/domain/oauth/renew-credential.ts";
import { readTokenAnswer, readTokenError } from "../../../services/mcp-proxy/domain/oauth/token-answer.ts";
import type { LedgerRecord } from "../../../services/mcp-proxy/domain/ports.ts";
import { proxyError } from "../../../services/mcp-proxy/domain/proxy-error.ts";
import type { SecretDocument } from "../../../services/mcp-proxy/domain/records.ts";
import { createRowBox } from "../../../services/mcp-proxy/domain/row-box.ts";
import { createRowMac } from "../../../services/mcp-proxy/domain/row-mac.ts";

const KEY = Buffer.alloc(32, 7);
const OWNER = {
  reads: { sessionId: "sesn_1", workspaceId: "wrkspc_default", epoch: 1n },
  asker: {
    caller: "spiffe://x",
    workspaceId: "wrkspc_default",
    sessionId: "sesn_1",
    epoch: 1n,
    tokenId: "tok_1",
  },
};

/** One credential, one claim, one Vault: enough to crash and fail at each step. */
class World {
  now = 1_000_000;
  version = 1n;
  isArchived = false;
  atVault: { document: SecretDocument; version: bigint } | undefined = {
    document: { secret: "access-token-1", refresh_token: "refresh-1", client_secret: "client-secret" },
    version: 1n,
  };
  claim: { requestId: string; from: bigint; answer: Buffer | null } | undefined;
  isBusy = false;
  isVaultAway = false;
  removed = 0;
  asked: string[] = [];
  records: LedgerRecord[] = [];
  reply: Reply = granted({ access_token: "access-token-2", refresh_token: "refresh-2", expires_in: 60 });
  duringRequest = () => {};

  readonly credential: CredentialRow = {
    credentialId: "vcrd_1",
    vaultId: "vlt_1",
    kind: "mcp_oauth",
    url: "https://mcp.test",
    secretName: "",
    config: {
      refresh: {
        client_id: "client",
        token_endpoint: "https://auth.test/token",
        token_endpoint_auth: "client_secret_basic",
      },
    },
    version: 1n,
    mac: Buffer.alloc(0),
  };

  constructor() {
    this.credential.mac = createRowMac(KEY).credential(this.credential);
  }

  readonly documents: DocumentStore = {
    read: async () => {
      this.refuseWhenAway();
      return this.atVault && { ...this.atVault, vaultRequestId: "v" };
    },
    replace: async (_credential, document, before) => {
      this.refuseWhenAway();
      if (this.atVault?.version !== before) return "moved";
      this.atVault = { document, version: before + 1n };
      return before + 1n;
    },
    destroy: async () => {},
    remove: async () => {
      this.removed += 1;
      this.atVault = undefined;
    },
  };

  renew() {
    const deps: RenewalDeps = {
      ledger: { write: async (record: LedgerRecord) => void this.records.push(record) } as never,
      bound: { judge: () => ({ digest: "", rule: "any" }) } as never,
      resolve: async () => ({ address: "192.0.2.1", family: 4, class: "public" }),
      documents: this.documents,
      exchanges: {
        refresh: async (_target, client, grant) => {
          this.asked.push(`${client.method} ${grant.refreshToken}`);
          this.duringRequest();
          return this.reply;
        },
      },
      renewals: {
        claim: async (_id, from, requestId): Promise<RenewalClaim> => {
          if (this.isArchived) return { state: "moved", version: null };
          if (this.version !== from) return { state: "moved", version: this.version };
          if (this.isBusy) return { state: "busy" };
          const answer = this.claim?.from === from ? this.claim.answer : null;
          this.claim = { requestId, from, answer };
          const { config, mac } = this.credential;
          return { state: "claimed", answer, config, mac };
        },
        version: async () => (this.isArchived ? null : this.version),
        keep: async (_id, requestId, answer) => {
          if (this.claim?.requestId === requestId) this.claim.answer = answer;
        },
        release: async (_id, requestId) => {
          if (this.claim?.requestId === requestId && this.claim.answer === null) this.claim = undefined;
        },
        end: async (_credential, version) => {
          if (this.isArchived) return false;
          this.version = version;
          this.claim = undefined;
          return true;
        },
      },
      box: createRowBox(KEY),
      mac: createRowMac(KEY),
      now: () => this.now,
      wait: async (ms) => {
        this.now += ms;
      },
    };
    return renewCredential(deps, OWNER, { ...this.credential, version: 1n });
  }

  private refuseWhenAway(): void {
    if (this.isVaultAway) throw proxyError("VAULT_UNAVAILABLE");
  }
}

function granted(body: object): Reply {
  const text = JSON.stringify(body);
  return {
    ok: true,
    status: 200,
    contentType: "application/json",
    challenge: "",
    body: text,
    bytes: text.length,
  };
}

describe("renewing OAuth tokens", () => {
  it("stores the new pair and keeps what the answer does not replace", async () => {
    const world = new World();
    assert.deepEqual(await world.renew(), { kind: "renewed", version: 2n });
    const { document } = world.atVault as { document: SecretDocument };
    assert.deepEqual([document.secret, document.refresh_token], ["access-token-2", "refresh-2"]);
    assert.equal(document.client_secret, "client-secret");
    assert.equal(document.expires_at, new Date(1_060_000).toISOString());
    assert.deepEqual(
      world.records.map(({ kind, reason }) => `${kind} ${reason}`.trim()),
      ["decision", "dispatch", "outcome ok"],
    );
    const other = new World();
    other.reply = granted({ access_token: "access-token-2" });
    await other.renew();
    assert.equal(other.atVault?.document.refresh_token, "refresh-1");
  });

  it("keeps an answer that Vault does not take, sealed, and stores it later without asking again [A156]", async () => {
    const world = new World();
    world.duringRequest = () => {
      world.isVaultAway = true;
    };
    assert.deepEqual(await world.renew(), { kind: "unavailable", failure: "vault" });
    assert.ok(world.claim?.answer && !world.claim.answer.includes("refresh-2"));
    world.isVaultAway = false;
    assert.deepEqual(await world.renew(), { kind: "renewed", version: 2n });
    assert.equal(world.atVault?.document.refresh_token, "refresh-2");
    assert.deepEqual(world.asked, ["client_secret_basic refresh-1"]);
    assert.equal(world.claim, undefined);
  });

  it("finds what a dead process gave to Vault and did not record, and asks nobody [A156]", async () => {
    const world = new World();
    world.atVault = { document: { secret: "access-token-2", refresh_token: "refresh-2" }, version: 2n };
    assert.deepEqual(await world.renew(), { kind: "renewed", version: 2n });
    assert.deepEqual(world.asked, []);
  });

  it("believes no record that was changed past the proxy", async () => {
    const world = new World();
    world.credential.mac = Buffer.alloc(32);
    await assert.rejects(world.renew(), { reason: "ROW_TAMPERED" });
    assert.deepEqual(world.asked, []);
  });

  it("gives way to tokens that somebody stored meanwhile", async () => {
    const world = new World();
    world.duringRequest = () => {
      world.atVault = { document: { secret: "a-persons-token", refresh_token: "theirs" }, version: 2n };
    };
    assert.deepEqual(await world.renew(), { kind: "renewed", version: 2n });
    assert.equal(world.atVault?.document.secret, "a-persons-token");
    const refused = new World();
    refused.reply = { ...granted({ error: "invalid_grant" }), status: 400 } as Reply;
    refused.duringRequest = () => {
      refused.version = 2n;
    };
    assert.deepEqual(await refused.renew(), { kind: "renewed", version: 2n });
  });

  it("leaves nothing behind of a credential that was archived meanwhile", async () => {
    const world = new World();
    world.duringRequest = () => {
      world.isArchived = true;
    };
    assert.deepEqual(await world.renew(), { kind: "none" });
    assert.equal(world.atVault, undefined);
    assert.ok(world.removed > 0);
  });

  it("frees its claim after a refusal and after trouble, and waits for another's claim only so long", async () => {
    for (const reply of [
      { ...granted({ error: "invalid_grant" }), status: 400 } as Reply,
      { ok: false, failure: "timeout", status: 0 } as Reply,
      { ...granted({}), status: 503 } as Reply,
    ]) {
      const world = new World();
      world.reply = reply;
      assert.match((await world.renew()).kind, /refused|unavailable/);
      assert.equal(world.claim, undefined);
      assert.equal(world.atVault?.document.refresh_token, "refresh-1");
    }
    const world = new World();
    world.isBusy = true;
    assert.deepEqual(await world.renew(), { kind: "unavailable", failure: "busy" });
    assert.equal(world.now, 1_020_000);
  });
});

describe("the answer of a token endpoint", () => {
  const read = (body: object) => readTokenAnswer(JSON.stringify(body), 0);

  it("is read without formalities: a spent refresh token must not be lost to one", () => {
    const expected = { accessToken: "an-access-token", refreshToken: "r" };
    for (const more of [
      {},
      { token_type: "bearer" },
      { token_type: "N/A?" },
      { id_token: 5 },
      { scope: 7 },
    ]) {
      assert.deepEqual(read({ access_token: "an-access-token", refresh_token: "r", ...more }), expected);
    }
    assert.equal(
      read({ access_token: "an-access-token", expires_in: "3600" })?.expiresAt,
      new Date(3_600_000).toISOString(),
    );
    for (const expires_in of [0, -1, "soon", null, 1e99, Number.NaN]) {
      assert.equal(read({ access_token: "an-access-token", expires_in })?.expiresAt, undefined);
    }
  });

  it("grants nothing without a usable token", () => {
    for (const body of [
      {},
      { access_token: "" },
      { access_token: 7 },
      { access_token: "a\nb-long-enough" },
      [],
      { access_token: "short" },
    ]) {
      assert.equal(read(body), undefined);
    }
    assert.equal(readTokenAnswer("<html>", 0), undefined);
    assert.equal(read({ access_token: "an-access-token", token_type: "DPoP" }), undefined);
  });

  it("has an error that is a word, or none", () => {
    assert.equal(readTokenError('{"error":"invalid_grant","error_description":"x"}'), "invalid_grant");
    for (const body of ['{"error":"<script>"}', '{"error":{}}', "no", "null", "[]"])
      assert.equal(readTokenError(body), "");
  });
});

describe("the box for rows", () => {
  it("opens with its key, for its row, as it was, and not otherwise", () => {
    const box = createRowBox(KEY);
    const sealed = box.seal("a secret", ["a", "1"]);
    assert.equal(box.open(sealed, ["a", "1"]), "a secret");
    assert.equal(box.open(sealed, ["a", "2"]), undefined);
    assert.equal(createRowBox(Buffer.alloc(32, 8)).open(sealed, ["a", "1"]), undefined);
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      assert.equal(box.open(changed, ["a", "1"]), undefined);
    }
    assert.equal(box.open(Buffer.alloc(5), ["a", "1"]), undefined);
    assert.notDeepEqual(box.seal("a secret", ["a", "1"]), sealed);
  });
});
