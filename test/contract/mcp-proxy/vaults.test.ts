import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { encodeForwardedPrincipal, PRINCIPAL_KEY } from "../../../services/common/grpc/principal.ts";
import { Role } from "../../../services/gen/ganglion/types/v1/access.ts";
import type { CreateCredentialRequest } from "../../../services/gen/ganglion/vault/v1/vault_service.ts";
import { failureOf, NO_CHANGE, ProxyKit } from "./proxy-kit.ts";

const SERVER = "https://mcp.example.test/mcp";

describe("VaultService", () => {
  let kit: ProxyKit;

  before(async function () {
    this.timeout(60_000);
    kit = await ProxyKit.start();
  });

  after(() => kit?.stop());

  const asClient = (workspaceId: string) => ({
    metadata: {
      [PRINCIPAL_KEY]: encodeForwardedPrincipal({
        role: Role.ROLE_CLIENT,
        workspaceId,
        keyId: "apikey_test",
        spiffeId: "",
        instance: "",
        peerSpiffeId: "",
      }),
    },
  });
  const newSecret = () => `cnry_${randomBytes(20).toString("hex")}`;
  const credential = async (
    vaultId: string,
    more: Partial<CreateCredentialRequest> = {},
    secret = newSecret(),
  ): Promise<CreateCredentialRequest> => ({
    requestId: "",
    vaultId,
    displayName: "token",
    metadata: {},
    auth: { $case: "staticBearer", value: { mcpServerUrl: SERVER } },
    secret: await kit.seal(secret, vaultId, SERVER),
    refreshToken: undefined,
    clientSecret: undefined,
    ...more,
  });
  const readAtVault = async (vaultId: string, credentialId: string) => {
    const path = `ganglion/data/vaults/${vaultId}/${credentialId}`;
    const { body, status } = await kit.vault.http.call("GET", path, { token: kit.rootToken, accept: [404] });
    return {
      status,
      data: body.data as { data: { secret: string } | null; metadata: { version: number } } | null,
    };
  };

  it("stores a sealed secret at Vault and answers the record only", async () => {
    const vaults = await kit.vaults();
    const vaultId = await kit.makeVault();
    const secret = newSecret();
    const { credential: made } = await vaults.createCredential(await credential(vaultId, {}, secret));
    assert.equal((await readAtVault(vaultId, made?.id ?? "")).data?.data?.secret, secret);
    const { credentials } = await vaults.listCredentials({
      vaultId,
      pageSize: 0,
      pageToken: "",
      includeArchived: false,
    });
    assert.deepEqual(credentials, [made]);
    assert.ok(
      !JSON.stringify(credentials, (_, value) =>
        typeof value === "bigint" ? String(value) : value,
      ).includes(secret),
    );
  });

  it("is idempotent by request id and refuses it with another body", async () => {
    const vaults = await kit.vaults();
    const requestId = randomUUID();
    const one = { requestId, displayName: "one", metadata: { a: "b" }, workspaceId: "", isDecoy: false };
    const [first, second] = [await vaults.createVault(one), await vaults.createVault(one)];
    assert.deepEqual(second, first);
    assert.equal((await failureOf(vaults.createVault({ ...one, displayName: "two" }))).reason, "ID_REUSED");
    const vaultId = first.vault?.id ?? "";
    const request = await credential(vaultId, { requestId: randomUUID() });
    const made = await vaults.createCredential(request);
    assert.deepEqual(await vaults.createCredential(request), made);
    assert.equal(
      (await failureOf(vaults.createCredential({ ...request, displayName: "x" }))).reason,
      "ID_REUSED",
    );
  });

  it("keeps one active credential for a destination, in whatever spelling", async () => {
    const vaults = await kit.vaults();
    const vaultId = await kit.makeVault();
    await vaults.createCredential(await credential(vaultId));
    const mcpServerUrl = "HTTPS://MCP.example.test:443/mcp/";
    const more = {
      auth: { $case: "staticBearer" as const, value: { mcpServerUrl } },
      secret: await kit.seal(newSecret(), vaultId, mcpServerUrl),
    };
    const error = await failureOf(vaults.createCredential(await credential(vaultId, more)));
    assert.equal(error.code, "ALREADY_EXISTS");
    assert.equal(error.reason, "CREDENTIAL_EXISTS");
  });

  it("lets one of many that race for a destination win, and leaves nothing of the others", async () => {
    const vaults = await kit.vaults();
    const vaultId = await kit.makeVault();
    const requests = await Promise.all([1, 2, 3, 4].map(() => credential(vaultId)));
    const results = await Promise.allSettled(requests.map((request) => vaults.createCredential(request)));
    assert.equal(results.filter(({ status }) => status === "fulfilled").length, 1);
    const rows = await kit.sql("ganglion_owner", "SELECT * FROM proxy.credentials WHERE vault_id = $1", [
      vaultId,
    ]);
    assert.equal(rows.length, 1);
  });

  it("replaces a secret; the version before is destroyed", async () => {
    const vaults = await kit.vaults();
    const vaultId = await kit.makeVault();
    const { credential: made } = await vaults.createCredential(await credential(vaultId));
    const credentialId = made?.id ?? "";
    const secret = newSecret();
    await vaults.updateCredential({
      ...NO_CHANGE,
      vaultId,
      credentialId,
      secret: await kit.seal(secret, vaultId, SERVER),
    });
    const { data } = await readAtVault(vaultId, credentialId);
    assert.equal(data?.data?.secret, secret);
    assert.equal(data?.metadata.version, 2);
    const path = `ganglion/data/vaults/${vaultId}/${credentialId}?version=1`;
    const old = await kit.vault.http.call("GET", path, { token: kit.rootToken, accept: [404] });
    assert.equal(old.status, 404);
  });

  it("archives: the secret is gone from Vault, the record stays, and again changes nothing", async () => {
    const vaults = await kit.vaults();
    const vaultId = await kit.makeVault();
    const { credential: made } = await vaults.createCredential(await credential(vaultId));
    const credentialId = made?.id ?? "";
    const archived = await vaults.archiveCredential({ vaultId, credentialId });
    assert.ok(archived.credential?.archiveTime);
    assert.equal((await readAtVault(vaultId, credentialId)).status, 404);
    const again = await vaults.archiveCredential({ vaultId, credentialId });
    assert.deepEqual(again.credential?.archiveTime, archived.credential?.archiveTime);
    const update = {
      ...NO_CHANGE,
      vaultId,
      credentialId,
      secret: await kit.seal(newSecret(), vaultId, SERVER),
    };
    assert.equal((await failureOf(vaults.updateCredential(update))).reason, "CREDENTIAL_ARCHIVED");
    await vaults.createCredential(await credential(vaultId));
  });

  it("refuses a seal for another vault or destination, a damaged one and one to another key", async () => {
    const vaults = await kit.vaults();
    const [vaultId, other] = [await kit.makeVault(), await kit.makeVault()];
    const moved = await credential(vaultId, { secret: await kit.seal(newSecret(), other, SERVER) });
    assert.equal((await failureOf(vaults.createCredential(moved))).reason, "SEAL_INVALID");
    const good = await kit.seal(newSecret(), vaultId, SERVER);
    const elsewhere = { $case: "staticBearer", value: { mcpServerUrl: "https://evil.test/mcp" } } as const;
    const steered = await credential(vaultId, { auth: elsewhere, secret: good });
    assert.equal((await failureOf(vaults.createCredential(steered))).reason, "SEAL_INVALID");
    const damaged = {
      ...good,
      ciphertext: Buffer.from(good.ciphertext.map((byte, i) => (i === 3 ? byte ^ 1 : byte))),
    };
    assert.equal(
      (await failureOf(vaults.createCredential(await credential(vaultId, { secret: damaged })))).reason,
      "SEAL_INVALID",
    );
    const foreign = { ...good, keyId: "seal_0" };
    assert.equal(
      (await failureOf(vaults.createCredential(await credential(vaultId, { secret: foreign })))).reason,
      "SEAL_INVALID",
    );
  });

  for (const secret of [
    "SEC\nRET-long-enough",
    "with\u0000nul-inside",
    "abc",
    " space-before",
    "ünprintable-value",
  ]) {
    it(`refuses a secret that cannot be a header value: ${JSON.stringify(secret)} [A027]`, async () => {
      const vaultId = await kit.makeVault();
      const error = await failureOf(
        (await kit.vaults()).createCredential(await credential(vaultId, {}, secret)),
      );
      assert.equal(error.code, "INVALID_ARGUMENT");
      assert.ok(!error.message.includes(secret));
    });
  }

  for (const vaultId of [
    "../vlt_other",
    "vlt_../../sys",
    "vlt_A",
    "vlt_a/b",
    "vlt_%2e%2e",
    "__proto__",
    "",
  ]) {
    it(`refuses ${JSON.stringify(vaultId)} as an id before anything looks for it [A113]`, async () => {
      const vaults = await kit.vaults();
      const error = await failureOf(vaults.getVault({ vaultId, workspaceId: "" }));
      assert.equal(error.code, "INVALID_ARGUMENT");
      assert.equal(error.violations[0]?.field, "vault_id");
    });
  }

  it("shows a client its own workspace only, and no system vault [A140]", async () => {
    const gateway = await kit.vaults("gateway");
    const { vault } = await gateway.createVault(
      { requestId: "", displayName: "mine", metadata: {}, workspaceId: "", isDecoy: false },
      asClient("wrkspc_one"),
    );
    const mine = { vaultId: vault?.id ?? "", workspaceId: "" };
    assert.equal((await gateway.getVault(mine, asClient("wrkspc_one"))).vault?.displayName, "mine");
    const foreign = await failureOf(gateway.getVault(mine, asClient("wrkspc_two")));
    const absent = await failureOf(
      gateway.getVault({ ...mine, vaultId: "vlt_absent" }, asClient("wrkspc_two")),
    );
    assert.equal(foreign.reason, "VAULT_NOT_FOUND");
    assert.equal(absent.reason, "VAULT_NOT_FOUND");
    const named = {
      ...{ requestId: "", displayName: "x", metadata: {}, workspaceId: "wrkspc_two", isDecoy: false },
    };
    assert.equal(
      (await failureOf(gateway.createVault(named, asClient("wrkspc_one")))).reason,
      "WORKSPACE_NOT_FOUND",
    );
    const { vault: system } = await (await kit.vaults()).getSystemVault({ workspaceId: "wrkspc_one" });
    assert.equal(system?.id, "vlt_system_one");
    const hidden = { vaultId: system?.id ?? "", workspaceId: "" };
    assert.equal(
      (await failureOf(gateway.getVault(hidden, asClient("wrkspc_one")))).reason,
      "VAULT_NOT_FOUND",
    );
    const { vaults: listed } = await gateway.listVaults(
      { pageSize: 0, pageToken: "", includeArchived: false, workspaceId: "" },
      asClient("wrkspc_one"),
    );
    assert.deepEqual(
      listed.map(({ id }) => id),
      [mine.vaultId],
    );
  });

  it("keeps model keys out of ordinary vaults and of clients' hands", async () => {
    const vaultId = await kit.makeVault();
    const auth = { $case: "modelApiKey" as const, value: { baseUrl: "https://api.anthropic.com" } };
    const error = await failureOf((await kit.vaults()).createCredential(await credential(vaultId, { auth })));
    assert.equal(error.reason, "INVALID_FIELD");
    const unknown = { $case: "modelApiKey" as const, value: { baseUrl: "https://evil.test" } };
    const steered = await failureOf(
      (await kit.vaults()).createCredential(await credential(vaultId, { auth: unknown })),
    );
    assert.equal(steered.violations[0]?.field, "model_api_key.base_url");
  });

  it("lists in pages, newest first", async () => {
    const gateway = await kit.vaults("gateway");
    const caller = asClient("wrkspc_pages");
    for (const displayName of ["a", "b", "c"]) {
      await gateway.createVault(
        { requestId: "", displayName, metadata: {}, workspaceId: "", isDecoy: false },
        caller,
      );
    }
    const page = (pageToken: string) =>
      gateway.listVaults({ pageSize: 2, pageToken, includeArchived: false, workspaceId: "" }, caller);
    const first = await page("");
    const second = await page(first.nextPageToken);
    assert.deepEqual(
      [...first.vaults, ...second.vaults].map(({ displayName }) => displayName),
      ["c", "b", "a"],
    );
    assert.equal(second.nextPageToken, "");
    assert.equal((await failureOf(page("nonsense"))).violations[0]?.field, "page_token");
  });

  for (const service of ["harness", "sandbox", "session"]) {
    it(`is closed to a ${service} certificate [A110]`, async () => {
      const vaults = await kit.vaults(service);
      const error = await failureOf(
        vaults.listVaults({ pageSize: 0, pageToken: "", includeArchived: false, workspaceId: "" }),
      );
      assert.equal(error.code, "PERMISSION_DENIED");
      assert.equal(error.reason, "ROLE_NOT_ALLOWED");
    });
  }
});
