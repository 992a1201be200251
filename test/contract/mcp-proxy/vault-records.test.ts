import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { verifyLog } from "../../../services/cli/audit/verify-log.ts";
import { freePort } from "../../../services/cli/up/free-port.ts";
import { encodeForwardedPrincipal, PRINCIPAL_KEY } from "../../../services/common/grpc/principal.ts";
import { Role } from "../../../services/gen/ganglion/types/v1/access.ts";
import { VaultServiceService } from "../../../services/gen/ganglion/vault/v1/vault_service.ts";
import { ArmedProcess } from "../../kit/crash/armed-process.ts";
import { runCli } from "../../kit/mesh.ts";
import { until } from "../../kit/until.ts";
import { failureOf, WORKSPACE } from "./proxy-kit.ts";
import { CHANGES, ChangeStage, type Line, type Prepared, SERVER } from "./vault-changes.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;
const PYTHON = fileURLToPath(new URL("../../security/audit/verify_audit.py", import.meta.url));
const OPERATOR = "spiffe://ganglion.local/operator/operator-1";
/** Methods that change no vault and no credential. */
const READS = /^(get(?!SystemVault$)|list)|^startAuthorization$/;

describe("changes of vaults and credentials in the audit log", function () {
  this.timeout(120_000);
  let stage: ChangeStage;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-changes-"));
    stage = await ChangeStage.start();
  });
  after(async () => {
    await stage?.stop();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  afterEach(function () {
    if (this.currentTest?.state === "failed")
      console.log(stage.kit.service.output().split("\n").slice(-8).join("\n"));
  });

  /** operation, kind, effect and reason of each record. */
  const steps = (lines: Line[]) =>
    lines.map(({ operation, kind, effect, reason }) =>
      [operation?.replace("vault.", ""), kind, effect, reason].filter(Boolean).join(" "),
    );
  const asClient = (workspaceId: string) => {
    const nobody = { spiffeId: "", instance: "", peerSpiffeId: "" };
    const client = { role: Role.ROLE_CLIENT, workspaceId, keyId: "apikey_test", ...nobody };
    return { metadata: { [PRINCIPAL_KEY]: encodeForwardedPrincipal(client) } };
  };

  it("cover every method that is not a read", () => {
    const methods = Object.keys(VaultServiceService).filter((name) => !READS.test(name));
    assert.deepEqual(methods.sort(), Object.keys(CHANGES).sort());
  });

  for (const [method, { operation, version, removes, prepare }] of Object.entries(CHANGES)) {
    it(`${method}: without a record nothing changes; with one, the decision comes before and the outcome after [A141] [L6]`, async () => {
      const { act, vaultId, credentialId }: Prepared = await prepare(stage);
      const [rows, asked] = [await stage.rows(), stage.asksAtVault().length];
      await stage.withoutLog(async () => {
        const error = await failureOf(act());
        assert.deepEqual([error.code, error.reason], ["UNAVAILABLE", "AUDIT_UNAVAILABLE"]);
      });
      assert.equal(await stage.rows(), rows, "the database is as it was");
      assert.equal(stage.asksAtVault().length, asked, "Vault was asked nothing");

      const since = await stage.head();
      const answer = (await act()) as { vault?: { id: string }; credential?: { id: string } };
      const lines = await stage.changes(since);
      const name = operation.replace("vault.", "");
      const removal = removes ? ["remove_secret decision allow", "remove_secret outcome ok"] : [];
      const [decision, outcome] = [lines[0], lines.at(-1)] as [Line, Line];
      assert.deepEqual(steps(lines), [`${name} decision allow`, ...removal, `${name} outcome ok`]);
      for (const line of lines) {
        assert.deepEqual([line.caller, line.session_id], [OPERATOR, ""]);
        assert.deepEqual([line.workspace_id, line.target], [WORKSPACE, vaultId ?? answer.vault?.id]);
      }
      const named = [decision, outcome].map((line) => line.credential_id);
      const expected = credentialId ?? answer.credential?.id ?? "";
      assert.deepEqual(named, [expected, expected]);
      for (const line of lines.slice(1, -1)) assert.match(line.credential_id ?? "", /^vcrd_/);

      assert.equal(outcome.credential_version, String(version));
      const written = stage.asksAtVault().find(({ id }) => id === outcome.vault_request_id);
      assert.equal(written !== undefined, version > 0, "Vault's own log can be joined");
      const [from, to] = [decision, outcome].map(({ created_at: at }) => Date.parse(at ?? ""));
      for (const { time, operation: what } of stage.asksAtVault().slice(asked)) {
        const at = Date.parse(time);
        assert.ok(at >= Number(from) && at <= Number(to), `${what} at Vault is between the two`);
      }
    });
  }

  it("a denial is written before its caller hears of it, whoever asks for whatever; a read is not", async () => {
    const operator = await stage.kit.vaults();
    const gateway = await stage.kit.vaults("gateway");
    const { vaultId, credentialId } = await stage.made();
    const archived = (await stage.made()).vaultId;
    await operator.archiveVault({ vaultId: archived });
    const system = (await operator.getSystemVault({ workspaceId: "" })).vault?.id ?? "";
    const foreign = asClient("wrkspc_other");
    const change = { displayName: "x", metadataSet: {}, metadataRemove: [] };
    const wrong = await stage.asked(vaultId);
    const unknown = "vcrd_01jdoesnotexist0000000000";
    const cases: [() => Promise<unknown>, string][] = [
      [() => gateway.archiveVault({ vaultId }, foreign), "archive_vault decision deny VAULT_NOT_FOUND"],
      [
        () => gateway.deleteCredential({ vaultId, credentialId }, foreign),
        "delete_credential decision deny VAULT_NOT_FOUND",
      ],
      [
        () =>
          gateway.createVault(
            { requestId: "", metadata: {}, displayName: "x", workspaceId: WORKSPACE, isDecoy: false },
            foreign,
          ),
        "create_vault decision deny WORKSPACE_NOT_FOUND",
      ],
      [() => operator.deleteVault({ vaultId: system }), "delete_vault decision deny VAULT_IS_SYSTEM"],
      [
        () => operator.updateVault({ vaultId: archived, ...change }),
        "update_vault decision deny VAULT_ARCHIVED",
      ],
      [
        () => operator.archiveCredential({ vaultId, credentialId: unknown }),
        "archive_credential decision deny CREDENTIAL_NOT_FOUND",
      ],
      [
        () => operator.validateCredential({ vaultId, credentialId: unknown }),
        "validate_credential decision deny CREDENTIAL_NOT_FOUND",
      ],
      [
        () =>
          operator.createCredential({
            ...wrong,
            auth: { $case: "staticBearer", value: { mcpServerUrl: `${SERVER}/2` } },
          }),
        "create_credential decision deny SEAL_INVALID",
      ],
      [
        () => operator.finishAuthorization({ state: "none", code: "c", iss: "" }),
        "finish_authorization decision deny AUTHORIZATION_NOT_FOUND",
      ],
    ];
    for (const [act, step] of cases) {
      const [since, rows] = [await stage.head(), await stage.rows()];
      assert.ok(step.endsWith((await failureOf(act())).reason), step);
      const lines = await stage.changes(since);
      assert.deepEqual(steps(lines), [step]);
      assert.equal(await stage.rows(), rows, step);
      const isForeign = step === cases[0]?.[1];
      if (isForeign) {
        assert.equal(lines[0]?.caller, "spiffe://ganglion.local/gateway/gateway-1 for apikey_test");
        assert.deepEqual([lines[0]?.workspace_id, lines[0]?.target], ["wrkspc_other", vaultId]);
      }
    }
    const since = await stage.head();
    await operator.getVault({ vaultId, workspaceId: "" });
    await operator.getCredential({ vaultId, credentialId });
    await operator.getSystemVault({ workspaceId: "" });
    assert.deepEqual(await stage.changes(since), []);
  });

  it("the same request twice at the same moment: what is written is what a decision names", async () => {
    const vaults = await stage.kit.vaults();
    const request = await stage.asked(await stage.kit.makeVault(), randomUUID());
    const since = await stage.head();
    const made = await Promise.all([1, 2, 3].map(() => vaults.createCredential(request)));
    const [id] = new Set(made.map(({ credential }) => credential?.id));
    assert.ok(made.every(({ credential }) => credential?.id === id));
    for (const line of await stage.changes(since)) {
      if (line.credential_version !== "0") assert.equal(line.credential_id, id);
    }
  });

  it("Vault is sealed: the outcome says so, and what it cannot remove now is recorded when it is removed [A116]", async () => {
    const vaults = await stage.kit.vaults();
    const [one, other] = [await stage.made(), await stage.kit.makeVault()];
    const request = await stage.asked(other, randomUUID());
    const since = await stage.head();
    await stage.kit.vault.http.call("PUT", "sys/seal", { token: stage.kit.rootToken });
    try {
      assert.equal((await failureOf(vaults.createCredential(request))).reason, "VAULT_UNAVAILABLE");
      await vaults.deleteCredential(one);
    } finally {
      await stage.kit.vault.http.call("PUT", "sys/unseal", { body: { key: stage.kit.unsealKey } });
    }
    assert.deepEqual(
      steps(await stage.changes(since)).filter((step) => !step.startsWith("remove")),
      [
        "create_credential decision allow",
        "create_credential outcome vault_unavailable",
        "delete_credential decision allow",
        "delete_credential outcome removed_later",
      ],
    );
    const removed = async () =>
      (await stage.changes(since)).filter(
        (line) => line.operation === "vault.remove_secret" && line.kind === "outcome" && line.reason === "ok",
      );
    await until(async () => (await removed()).length > 0, "the removal at Vault");
    const [last] = await removed();
    assert.deepEqual([last?.credential_id, last?.target, last?.caller], [one.credentialId, one.vaultId, ""]);
  });

  it("a process that died in between: its successor closes the change, and says that nobody knows how far it came [A143]", async () => {
    const address = `127.0.0.1:${await freePort()}`;
    const arm = ["--import", `${ROOT}test/kit/crash/arm.ts`, `${ROOT}services/mcp-proxy/main.ts`];
    const armed = new ArmedProcess({
      name: "mcp-proxy-2",
      command: [process.execPath, ...arm],
      env: stage.kit.proxyEnv({ GANGLION_INSTANCE: "mcp-proxy-2", GANGLION_LISTEN: address }),
      bootstrap: () => stage.kit.bootstrap(),
    });
    await armed.start();
    try {
      const vaults = await stage.kit.client(VaultServiceService, "operator", "operator-2", address);
      const request = await stage.asked(await stage.kit.makeVault(), randomUUID());
      const since = await stage.head();
      const hit = Promise.withResolvers<void>();
      await armed.arm("mcp-proxy.vault.write.receive", "kill", hit.resolve);
      await Promise.all([assert.rejects(vaults.createCredential(request)), hit.promise]);
      await armed.ready;
      const [decision, recovery] = await stage.changes(since);
      assert.deepEqual(steps(await stage.changes(since)), [
        "create_credential decision allow",
        "create_credential recovery unknown",
      ]);
      assert.equal(recovery?.credential_id, decision?.credential_id);
      // The same request goes on with the credential that the first one began.
      const { credential } = await (await stage.kit.vaults()).createCredential(request);
      assert.equal(credential?.id, decision?.credential_id);
    } finally {
      await armed.stop();
    }
  });

  it("is a sound log that agrees with Vault's own; explain tells a change, and who-used does not count it", async () => {
    const { vaultId, credentialId } = await stage.made();
    const lines = await stage.lines();
    const log = join(folder, "records.jsonl");
    writeFileSync(log, `${lines.join("\n")}\n`);
    const vaultLines = readFileSync(stage.kit.vault.auditFile, "utf8").split("\n");
    const { findings } = verifyLog({
      ...{ logs: [lines], checkpoints: [], receipts: [], graceMs: 900_000 },
      vaultAudit: { lines: vaultLines, mount: "ganglion" },
    });
    assert.deepEqual(
      findings.list.map(({ kind }) => kind),
      ["no_anchor"],
    );
    const python = spawnSync("python3", [PYTHON, folder], { encoding: "utf8" });
    assert.equal(python.stdout.trim(), "11", "the second verifier misses an anchor, and nothing else");

    const change = lines
      .map((line) => JSON.parse(line) as Line)
      .find((line) => line.kind === "outcome" && line.credential_id === credentialId);
    const told = await runCli(["audit", "explain", change?.request_id ?? "", "--log", log]);
    assert.equal(told.code, 0, told.stderr);
    assert.match(told.stdout, new RegExp(`who\\s+${OPERATOR}`));
    assert.match(
      told.stdout,
      new RegExp(`asked\\s+vault\\.create_credential in vault ${vaultId} of ${WORKSPACE}`),
    );
    assert.match(
      told.stdout,
      new RegExp(`${credentialId}, version 1 written by Vault's request ${change?.vault_request_id}`),
    );
    assert.match(told.stdout, /outcome\s+ok, record/);
    const used = await runCli(["audit", "who-used", credentialId, "--log", log]);
    assert.equal(used.code, 0, used.stderr);
    assert.ok(!used.stdout.includes("req_"), used.stdout);
  });

  it("no record has a secret, a code or a state in it, nor anything that is computed from one", async () => {
    const text = (await stage.lines()).join("\n");
    assert.ok(stage.secrets.length >= 15);
    for (const secret of stage.secrets) {
      const bytes = Buffer.from(secret);
      const digest = createHash("sha256").update(bytes).digest();
      const forms = [
        secret,
        ...(["base64", "base64url", "hex"] as const).map((form) => bytes.toString(form)),
      ];
      for (const form of [...forms, digest.toString("hex"), digest.toString("base64")]) {
        assert.ok(!text.includes(form));
        assert.ok(!stage.kit.service.output().includes(form));
      }
    }
  });
});
