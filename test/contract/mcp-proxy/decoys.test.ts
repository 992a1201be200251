import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { encodeForwardedPrincipal, PRINCIPAL_KEY } from "../../../services/common/grpc/principal.ts";
import { newId } from "../../../services/common/ids/new-id.ts";
import { Role } from "../../../services/gen/ganglion/types/v1/access.ts";
import { runCli } from "../../kit/mesh.ts";
import { failureOf, ProxyKit, WORKSPACE } from "./proxy-kit.ts";

const PYTHON = fileURLToPath(new URL("../../security/audit/verify_audit.py", import.meta.url));
const URL_OF_DECOY = "https://backup.example.test/mcp";

describe("a decoy", function () {
  this.timeout(60_000);
  let kit: ProxyKit;
  let decoy: string;
  let credentialId: string;
  let folder: string;
  const secret = `cnry_${randomUUID()}`;

  before(async function () {
    this.timeout(90_000);
    folder = mkdtempSync(join(tmpdir(), "ganglion-decoys-"));
    kit = await ProxyKit.start({ GANGLION_ADMIN_LISTEN: "127.0.0.1:0" });
    const vaults = await kit.vaults();
    const asked = { requestId: randomUUID(), displayName: "Backup keys", metadata: {}, workspaceId: "" };
    const { vault } = await vaults.createVault({ ...asked, isDecoy: true });
    // A repetition makes neither another one nor another record.
    assert.deepEqual((await vaults.createVault({ ...asked, isDecoy: true })).vault, vault);
    assert.equal((await failureOf(vaults.createVault({ ...asked, isDecoy: false }))).reason, "ID_REUSED");
    assert.equal(vault?.isDecoy, true);
    decoy = vault.id;
    const { credential } = await vaults.createCredential({
      ...{ requestId: "", vaultId: decoy, displayName: "root", metadata: {} },
      auth: { $case: "staticBearer", value: { mcpServerUrl: URL_OF_DECOY } },
      secret: await kit.seal(secret, decoy, URL_OF_DECOY),
      ...{ refreshToken: undefined, clientSecret: undefined },
    });
    credentialId = credential?.id ?? "";
  });
  after(async () => {
    await kit?.stop();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const asClient = (workspaceId: string) => ({
    metadata: {
      [PRINCIPAL_KEY]: encodeForwardedPrincipal({
        ...{ role: Role.ROLE_CLIENT, workspaceId, keyId: "apikey_test" },
        ...{ spiffeId: "", instance: "", peerSpiffeId: "" },
      }),
    },
  });
  const bindingOf = (vaultIds: string[], workspaceId = WORKSPACE) => ({
    ...{ sessionId: newId("sesn"), workspaceId, vaultIds, mcpServers: [{ name: "demo", url: URL_OF_DECOY }] },
    ...{ models: [], replacesMcpServers: false, networking: undefined, gitRepositories: [] },
  });
  const lines = async (): Promise<string[]> => {
    const select = "SELECT proxy.audit_line(r) AS line FROM proxy.audit_records r ORDER BY sequence";
    return (await kit.sql("ganglion_owner", select)).map(({ line }) => line as string);
  };
  const honeytokens = async () =>
    (await lines())
      .map((line) => JSON.parse(line) as Record<string, string>)
      .filter(({ kind }) => kind === "honeytoken");
  const uses = async (): Promise<number> => {
    const text = await (await fetch(`http://${kit.service.listening.admin_addr}/metrics`)).text();
    return Number(/^ganglion_mcp_proxy_honeytoken_uses_total\{[^}]*\} (\d+)$/m.exec(text)?.[1]);
  };
  const alarms = () => kit.service.lines().filter(({ msg }) => msg === "somebody reached for a decoy");
  /** Does what must be refused as if there were no such vault, and answers the record that it leaves. */
  const reach = async (act: () => Promise<unknown>): Promise<Record<string, string>> => {
    const [before, count, alarmed] = [await honeytokens(), await uses(), alarms().length];
    assert.equal((await failureOf(act())).reason, "VAULT_NOT_FOUND");
    const after = await honeytokens();
    assert.equal(after.length, before.length + 1);
    assert.equal(await uses(), count + 1);
    const alarm = alarms().at(-1);
    assert.equal(alarms().length, alarmed + 1);
    const record = after.at(-1) as Record<string, string>;
    assert.deepEqual([alarm?.level, alarm?.vault_id, alarm?.request_id], ["error", decoy, record.request_id]);
    assert.deepEqual([record.reason, record.target], ["used", decoy]);
    return record;
  };

  it("is named by the log when it is made, once, and is a vault like any other to clients", async () => {
    const planted = await honeytokens();
    assert.deepEqual(
      planted.map(({ reason, target, operation }) => [reason, target, operation]),
      [["planted", decoy, "vault.create_vault"]],
    );
    assert.equal(await uses(), 0, "an alert on the increase sees the first one");
    const gateway = await kit.vaults("gateway");
    const own = asClient(WORKSPACE);
    const page = { pageSize: 10, pageToken: "", includeArchived: false, workspaceId: "" };
    const { vaults } = await gateway.listVaults(page, own);
    assert.equal(vaults.find(({ id }) => id === decoy)?.isDecoy, false);
    const { vault } = await gateway.getVault({ vaultId: decoy, workspaceId: "" }, own);
    assert.equal(vault?.isDecoy, false);
    const made = { requestId: "", displayName: "x", metadata: {}, workspaceId: "", isDecoy: true };
    assert.equal((await failureOf(gateway.createVault(made, own))).reason, "ROLE_NOT_ALLOWED");
    assert.deepEqual(await honeytokens(), planted);
  });

  it("cannot be bound, alone, beside another vault, by another workspace or with new servers", async () => {
    const session = await kit.bindings();
    const other = await kit.makeVault();
    const first = bindingOf([decoy]);
    const record = await reach(() => session.bind(first));
    assert.equal(record.session_id, first.sessionId);
    assert.equal(record.caller, "spiffe://ganglion.local/session/session-1");
    assert.equal(record.operation, "binding.bind");
    await reach(() => session.bind(bindingOf([other, decoy])));
    await reach(() => session.bind(bindingOf([decoy], "wrkspc_other")));
    const bound = bindingOf([other]);
    await session.bind(bound);
    const replaced = await reach(() =>
      session.bind({ ...bound, vaultIds: [decoy], replacesMcpServers: true }),
    );
    assert.equal(replaced.operation, "binding.replace_servers");
    const rows = await kit.sql(
      "ganglion_owner",
      "SELECT session_id FROM proxy.bindings WHERE $1 = ANY (vault_ids)",
      [decoy],
    );
    assert.deepEqual(rows, []);
  });

  it("is not validated, whoever asks, and its credential is not read", async () => {
    const named = { vaultId: decoy, credentialId };
    const byOperator = await reach(async () => (await kit.vaults()).validateCredential(named));
    assert.equal(byOperator.credential_id, credentialId);
    const gateway = await kit.vaults("gateway");
    const byKey = await reach(() => gateway.validateCredential(named, asClient(WORKSPACE)));
    assert.equal(byKey.caller, "spiffe://ganglion.local/gateway/gateway-1 for apikey_test");
    await reach(() => gateway.validateCredential(named, asClient("wrkspc_other")));
    const explained = await runCli(["audit", "explain", byKey.request_id ?? "", "--log", await exported()]);
    assert.match(explained.stdout, /honeytoken +refused: nobody may use a decoy/);
  });

  it("is none that the database alone could make or unmake", async () => {
    const session = await kit.bindings();
    const other = await kit.makeVault();
    const before = await honeytokens();
    const mark = (vaultId: string, isDecoy: boolean) =>
      kit.sql("ganglion_owner", "UPDATE proxy.vaults SET is_decoy = $2 WHERE vault_id = $1", [
        vaultId,
        isDecoy,
      ]);
    await mark(other, true);
    assert.equal((await failureOf(session.bind(bindingOf([other])))).reason, "ROW_TAMPERED");
    await mark(decoy, false);
    assert.equal((await failureOf(session.bind(bindingOf([decoy])))).reason, "ROW_TAMPERED");
    const named = { vaultId: decoy, credentialId };
    assert.equal((await failureOf((await kit.vaults()).validateCredential(named))).reason, "ROW_TAMPERED");
    await mark(decoy, true);
    assert.deepEqual(await honeytokens(), before);
  });

  const exported = async (): Promise<string> => {
    const file = join(folder, "records.jsonl");
    writeFileSync(file, (await lines()).map((line) => `${line}\n`).join(""));
    return file;
  };

  it("raises the alarm and is refused, but differently, when the log does not take the record", async () => {
    const write = "EXECUTE ON FUNCTION proxy.write_records(jsonb)";
    await kit.sql("ganglion_owner", `REVOKE ${write} FROM ganglion_proxy`);
    const [count, alarmed] = [await uses(), alarms().length];
    try {
      const refused = await failureOf((await kit.bindings()).bind(bindingOf([decoy])));
      assert.equal(refused.reason, "AUDIT_UNAVAILABLE");
    } finally {
      await kit.sql("ganglion_owner", `GRANT ${write} TO ganglion_proxy`);
    }
    assert.deepEqual([await uses(), alarms().length], [count + 1, alarmed + 1]);
  });

  it("that was looked at past mcp-proxy is found in Vault's own log, read or refused", async () => {
    const log = await exported();
    const verify = async () =>
      runCli(["audit", "verify", "--log", log, "--vault-audit", kit.vault.auditFile]);
    // What this test did to it so far was writing.
    const sound = await verify();
    assert.equal(sound.code, 0, sound.stdout);
    assert.match(sound.stdout, /\d+ uses of decoys/);
    const path = `ganglion/data/vaults/${decoy}/${credentialId}`;
    const { body: answer } = await kit.vault.http.call("GET", path, { token: kit.rootToken });
    assert.ok(JSON.stringify(answer).includes(secret));
    const read = await verify();
    assert.equal(read.code, 12, read.stdout);
    assert.match(
      read.stdout,
      new RegExp(`honeytoken: .* was to read credential ${credentialId} in decoy ${decoy}`),
    );
    assert.doesNotMatch(read.stdout, /^vault:/m);
    await kit.vault.http.call("GET", path, { token: "hvs.somebody-elses", accept: [403] });
    const refused = await verify();
    assert.equal(refused.code, 12);
    assert.match(
      refused.stdout,
      new RegExp(`credential ${credentialId} in decoy ${decoy}, which Vault refused`),
    );
    const python = spawnSync("python3", [PYTHON, folder], { encoding: "utf8" });
    assert.equal(python.stdout.trim(), "11", "the second verifier misses an anchor, and nothing else");
  });
});
