import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import pg from "pg";
import { newId } from "../../../services/common/ids/new-id.ts";
import {
  BindingServiceService,
  type BindRequest,
  type Networking,
} from "../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import { createBindingStore } from "../../../services/mcp-proxy/store/binding-store.ts";
import { endPool } from "../../kit/end-pool.ts";
import { bindRequest } from "./bind-request.ts";
import { failureOf, ProxyKit, WORKSPACE } from "./proxy-kit.ts";

const LIMITED: Networking = {
  type: 2,
  allowedHosts: ["a.test"],
  allowMcpServers: false,
  allowPackageManagers: false,
};

describe("BindingService", () => {
  let kit: ProxyKit;

  before(async function () {
    this.timeout(60_000);
    kit = await ProxyKit.start();
  });

  after(() => kit?.stop());

  const issue = async (sessionId: string, epoch = 1n, harness = "harness-1") => {
    const client = await kit.client(BindingServiceService, "harness", harness);
    return client.issueToken({ sessionId, epoch, audience: 1, handId: "" });
  };
  const owner = (harness = "harness-1") => `spiffe://ganglion.local/harness/${harness}`;

  it("binds once: the same again changes nothing, another binding is refused", async () => {
    const session = await kit.bindings();
    const request = bindRequest({ vaultIds: [await kit.makeVault()] });
    await session.bind(request);
    await session.bind(request);
    for (const more of [
      { models: ["claude-test", "other"] },
      { vaultIds: [] },
      { workspaceId: "wrkspc_other", vaultIds: [] },
    ]) {
      const error = await failureOf(session.bind({ ...request, ...more }));
      assert.equal(error.code, "ALREADY_EXISTS");
      assert.equal(error.reason, "ID_REUSED");
    }
  });

  it("gives a bound session other servers when that is asked for, and changes nothing else with them", async () => {
    const session = await kit.bindings();
    const request = bindRequest({ vaultIds: [await kit.makeVault()] });
    await session.bind(request);
    const other = {
      ...request,
      mcpServers: [{ name: "other", url: "https://other.example.test/mcp" }],
      replacesMcpServers: true,
    };
    await session.bind(other);
    await session.bind(other);
    // The row is whole: a token is issued only for one whose MAC is right.
    kit.leases.set(request.sessionId, { workspaceId: WORKSPACE, epoch: 1n, owner: owner() });
    assert.notEqual((await issue(request.sessionId)).token, "");
    await session.bind({ ...other, replacesMcpServers: false });
    assert.equal((await failureOf(session.bind(request))).reason, "ID_REUSED");
    for (const more of [{ models: ["claude-other"] }, { vaultIds: [] }, { workspaceId: "wrkspc_other" }]) {
      assert.equal((await failureOf(session.bind({ ...other, ...more }))).reason, "ID_REUSED");
    }
    const unbound = { ...other, sessionId: newId("sesn") };
    assert.equal((await failureOf(session.bind(unbound))).reason, "BINDING_NOT_FOUND");
  });

  it("refuses vaults that are absent, another workspace's or the system vault", async () => {
    const session = await kit.bindings();
    const { vault } = await (await kit.vaults()).getSystemVault({ workspaceId: "" });
    const foreign = await (await kit.vaults()).createVault({
      requestId: "",
      displayName: "x",
      metadata: {},
      workspaceId: "wrkspc_other",
      isDecoy: false,
    });
    for (const vaultId of ["vlt_absent", foreign.vault?.id ?? "", vault?.id ?? ""]) {
      assert.equal(
        (await failureOf(session.bind(bindRequest({ vaultIds: [vaultId] })))).reason,
        "VAULT_NOT_FOUND",
      );
    }
  });

  it("names every malformed field", async () => {
    const bad = bindRequest({
      sessionId: "",
      workspaceId: "x",
      vaultIds: Array.from({ length: 22 }, (_, i) => `vlt_${i}`),
    });
    const error = await failureOf((await kit.bindings()).bind(bad));
    const fields = error.violations.map(({ field }) => field);
    assert.deepEqual(fields, ["session_id", "workspace_id", "vault_ids"]);
    const servers = bindRequest({
      mcpServers: [
        { name: "a", url: "ftp://x" },
        { name: "a", url: "https://x" },
      ],
    });
    const second = await failureOf((await kit.bindings()).bind(servers));
    assert.deepEqual(
      second.violations.map(({ field }) => field),
      ["mcp_servers[0].url", "mcp_servers"],
    );
    const networking = { ...LIMITED, allowedHosts: ["a.test", "https://a.test", "A.test", "*"] };
    const repository = { url: "https://git.test/a/b", allowFetch: true, allowPush: true, refs: [] };
    const rules = bindRequest({
      networking,
      gitRepositories: [
        repository,
        { ...repository, url: "https://git.test/a/b.git" },
        { ...repository, url: "https://u:p@git.test/a/c" },
        {
          ...repository,
          url: "https://git.test/a/d",
          refs: ["refs/heads/*", "main", "refs/*/x", "refs/a..b"],
        },
      ],
    });
    const third = await failureOf((await kit.bindings()).bind(rules));
    assert.deepEqual(
      third.violations.map(({ field }) => field),
      [
        "networking.allowed_hosts[1]",
        "networking.allowed_hosts[2]",
        "networking.allowed_hosts[3]",
        "git_repositories[2].url",
        "git_repositories[3].refs[1]",
        "git_repositories[3].refs[2]",
        "git_repositories[3].refs[3]",
        "git_repositories",
      ],
    );
  });

  it("binds the rules for hands with all else: other ones are another binding", async () => {
    const session = await kit.bindings();
    const repository = {
      url: "https://git.test/a/b.git",
      allowFetch: true,
      allowPush: true,
      refs: ["refs/heads/*"],
    };
    const request = bindRequest({ networking: LIMITED, gitRepositories: [repository] });
    await session.bind(request);
    await session.bind(request);
    // Another spelling of the same repository.
    await session.bind({ ...request, gitRepositories: [{ ...repository, url: "https://GIT.test/a/b" }] });
    const others: Partial<BindRequest>[] = [
      { networking: undefined },
      { networking: { ...LIMITED, type: 1, allowedHosts: [] } },
      { networking: { ...LIMITED, allowedHosts: ["b.test"] } },
      { networking: { ...LIMITED, allowPackageManagers: true } },
      { gitRepositories: [] },
      { gitRepositories: [{ ...repository, refs: ["refs/*"] }] },
      { gitRepositories: [{ ...repository, allowPush: false }] },
    ];
    for (const more of others) {
      for (const replacesMcpServers of [false, true]) {
        const failure = await failureOf(session.bind({ ...request, ...more, replacesMcpServers }));
        assert.equal(failure.reason, "ID_REUSED", JSON.stringify(more));
      }
    }
  });

  it("issues a token only to the harness that holds the lease, in that epoch", async () => {
    const request = bindRequest();
    await (await kit.bindings()).bind(request);
    const { sessionId } = request;
    assert.equal((await failureOf(issue(sessionId))).reason, "LEASE_NOT_CONFIRMED");
    kit.leases.set(sessionId, { workspaceId: WORKSPACE, epoch: 2n, owner: owner() });
    assert.equal((await failureOf(issue(sessionId, 1n))).reason, "LEASE_NOT_CONFIRMED");
    assert.equal((await failureOf(issue(sessionId, 3n))).reason, "LEASE_NOT_CONFIRMED");
    assert.equal((await failureOf(issue(sessionId, 2n, "harness-2"))).reason, "LEASE_NOT_CONFIRMED");
    kit.leases.set(sessionId, { workspaceId: "wrkspc_other", epoch: 2n, owner: owner() });
    assert.equal((await failureOf(issue(sessionId, 2n))).reason, "LEASE_NOT_CONFIRMED");
    kit.leases.set(sessionId, { workspaceId: WORKSPACE, epoch: 2n, owner: "" });
    assert.equal((await failureOf(issue(sessionId, 2n))).reason, "LEASE_NOT_CONFIRMED");
    kit.leases.set(sessionId, { workspaceId: WORKSPACE, epoch: 2n, owner: owner() });
    const { token, tokenId } = await issue(sessionId, 2n);
    assert.match(token, /^gst_[A-Za-z0-9_-]{43}$/);
    const rows = await kit.sql("ganglion_owner", "SELECT * FROM proxy.tokens WHERE session_id = $1", [
      sessionId,
    ]);
    assert.equal(rows.length, 1);
    assert.equal(rows[0].token_id, tokenId);
    assert.ok(!JSON.stringify(rows).includes(token), "only a hash is stored");
    await kit.raiseFence(sessionId, 3n, false);
    assert.equal((await failureOf(issue(sessionId, 2n))).reason, "LEASE_NOT_CONFIRMED");
  });

  it("stores a harness's token without waiting for the disk, and nothing else on that connection", async () => {
    const { sessionId } = bindRequest();
    await (await kit.bindings()).bind(bindRequest({ sessionId }));
    const pool = new pg.Pool({ ...kit.postgres.connection("ganglion_proxy"), max: 1 });
    try {
      const store = createBindingStore(pool);
      const setting = async () => (await pool.query("SHOW synchronous_commit")).rows[0].synchronous_commit;
      const before = await setting();
      assert.notEqual(before, "off");
      for (const audience of ["harness", "hand"]) {
        const more = { epoch: 1n, audience, spiffeId: owner(), handId: "" };
        const row = { ...more, sessionId, tokenId: newId("tok"), tokenHash: randomBytes(32) };
        await store.insertToken(row, Buffer.alloc(32));
        assert.equal(await setting(), before);
      }
      const stored = "SELECT audience FROM proxy.tokens WHERE session_id = $1 ORDER BY audience";
      const { rows } = await pool.query(stored, [sessionId]);
      assert.deepEqual(rows, [{ audience: "hand" }, { audience: "harness" }]);
    } finally {
      await endPool(pool);
    }
  });

  it("issues nothing for a session that is not bound, or has ended, or without audience [A013]", async () => {
    const unbound = newId("sesn");
    kit.leases.set(unbound, { workspaceId: WORKSPACE, epoch: 1n, owner: owner() });
    assert.equal((await failureOf(issue(unbound))).reason, "BINDING_NOT_FOUND");
    const request = bindRequest();
    await (await kit.bindings()).bind(request);
    kit.leases.set(request.sessionId, { workspaceId: WORKSPACE, epoch: 1n, owner: owner() });
    const client = await kit.client(BindingServiceService, "harness");
    const none = await failureOf(
      client.issueToken({ sessionId: request.sessionId, epoch: 1n, audience: 0, handId: "" }),
    );
    assert.equal(none.violations[0]?.field, "audience");
    await (await kit.bindings()).endBinding({ sessionId: request.sessionId });
    await (await kit.bindings()).endBinding({ sessionId: request.sessionId });
    assert.equal((await failureOf(issue(request.sessionId))).reason, "LEASE_NOT_CONFIRMED");
  });

  it("says when the session service cannot be asked", async function () {
    this.timeout(40_000);
    const other = await kit.startProxy({
      GANGLION_INSTANCE: "mcp-proxy-2",
      GANGLION_SESSION_ADDR: "127.0.0.1:1",
    });
    try {
      const client = await kit.client(BindingServiceService, "harness", "harness-1", other.listening.addr);
      const error = await failureOf(
        client.issueToken({ sessionId: newId("sesn"), epoch: 1n, audience: 1, handId: "" }),
      );
      assert.equal(error.reason, "LOG_UNAVAILABLE");
    } finally {
      await other.stop();
    }
  });

  it("never lowers a fence", async () => {
    const sessionId = newId("sesn");
    await kit.raiseFence(sessionId, 5n, false);
    await kit.raiseFence(sessionId, 2n, false);
    await kit.raiseFence(sessionId, 0n, true);
    await kit.raiseFence(sessionId, 1n, false);
    const [fence] = await kit.sql("ganglion_owner", "SELECT * FROM proxy.fences WHERE session_id = $1", [
      sessionId,
    ]);
    assert.equal(fence.lowest_epoch, "5");
    assert.equal(fence.ended, true);
  });

  for (const statement of [
    "UPDATE proxy.fences SET ended = false",
    "DELETE FROM proxy.fences",
    "INSERT INTO proxy.fences VALUES ('x', 0, false)",
    "UPDATE proxy.audit_records SET reason = ''",
    "DELETE FROM proxy.audit_records",
    "TRUNCATE proxy.audit_records",
    "INSERT INTO proxy.audit_head VALUES (false, 0)",
    "UPDATE proxy.audit_head SET sequence = 0",
    "UPDATE proxy.tokens SET epoch = 9",
    "DELETE FROM proxy.tokens",
    "UPDATE proxy.bindings SET models = '{}'",
    "DELETE FROM proxy.open_requests",
    "INSERT INTO proxy.vault_tokens SELECT * FROM proxy.vault_tokens",
    "ALTER TABLE proxy.audit_records DISABLE TRIGGER ALL",
    "DROP TABLE proxy.audit_records",
  ]) {
    it(`the proxy's own role may not: ${statement} [A137]`, async () => {
      await assert.rejects(kit.sql("ganglion_proxy", statement), { code: "42501" });
    });
  }

  it("the session's role may raise fences and see nothing", async () => {
    for (const table of ["tokens", "bindings", "credentials", "audit_records", "vault_tokens", "fences"]) {
      await assert.rejects(kit.sql("ganglion_session", `SELECT * FROM proxy.${table}`), { code: "42501" });
    }
    await assert.rejects(kit.sql("ganglion_session", "SELECT proxy.write_records('[]')"), { code: "42501" });
  });
});
