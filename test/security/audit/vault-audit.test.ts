import assert from "node:assert/strict";
import { verifyLog } from "../../../services/cli/audit/verify-log.ts";
import { type Content, canonicalText, MadeLog } from "./made-log.ts";

/** A read of a credential as Vault's audit file has it. */
const readAt = (second: number, id: string, more: { credential?: string; session?: string } = {}) => {
  const { credential = "vcrd_1", session = "sesn_a" } = more;
  return JSON.stringify({
    type: "response",
    time: `2026-11-30T10:00:${String(second).padStart(2, "0")}.500000000Z`,
    auth: { metadata: { session_id: session } },
    request: { id, operation: "read", path: `ganglion/data/vaults/vlt_1/${credential}` },
    response: { data: { data: {} } },
  });
};

/** One request whose records are written at the seconds 1, 2 and 3. */
const found = (...vaultLines: string[]): string[] => {
  const log = new MadeLog();
  log.request("req_a", "sesn_a");
  return foundIn(log, vaultLines);
};
const foundIn = (log: MadeLog, vaultLines: string[]): string[] => {
  const { findings } = verifyLog({
    logs: [log.records.map(canonicalText)],
    ...{ checkpoints: [], receipts: [], graceMs: 900_000 },
    vaultAudit: { lines: vaultLines, mount: "ganglion" },
  });
  return findings.list.filter(({ kind }) => kind === "vault").map(({ text }) => text);
};
const own = readAt(1, "vault-req_a");
const noise = (second: number) => readAt(second, "vault-noise").replace("vlt_1/vcrd_1", "x");
/** A write of a credential as Vault's audit file has it. */
const writeAt = (second: number, id: string, operation = "update", credential = "vcrd_1", vault = "vlt_1") =>
  readAt(second, id, { credential, session: "" }).replace('"read"', `"${operation}"`).replace("vlt_1", vault);
/** A change whose records are written at the seconds 1 and 2. */
const changed = (more: Content = {}, last: Content = { kind: "outcome", reason: "ok" }) => {
  const log = new MadeLog();
  const common = { request_id: "req_c", operation: "vault.update_credential", target: "vlt_1", epoch: "0" };
  const blank = { ...common, session_id: "", destination: "", credential_version: "0" };
  log.add({ ...blank, kind: "decision", effect: "allow" });
  log.add({ ...blank, credential_version: "2", vault_request_id: "vault-req_c", ...more, ...last });
  return log;
};
const other = (second: number) => readAt(second, "vault-other", { session: "sesn_b" });

describe("an audit log beside Vault's own", () => {
  it("agrees when each read is named by a record for that credential and session", () => {
    assert.deepEqual(found(own), []);
  });

  it("a read that no record names is found, and so is one that a record tells otherwise", () => {
    assert.match(
      found(own, other(2)).join(),
      /vault-other read credential vcrd_1 for session sesn_b; no record/,
    );
    assert.match(found(readAt(1, "vault-req_a", { credential: "vcrd_2" })).join(), /read another credential/);
    assert.match(found(readAt(1, "vault-req_a", { session: "sesn_b" })).join(), /made for another session/);
  });

  it("a read that gave nothing out needs no record: of nothing, or of a deleted version", () => {
    const answering = (data: unknown) =>
      JSON.stringify({ ...JSON.parse(other(2)), response: data === undefined ? {} : { data } });
    for (const nothing of [undefined, null, { data: null, metadata: { deletion_time: "x" } }]) {
      assert.deepEqual(found(own, answering(nothing)), []);
    }
    assert.equal(found(own, answering({ data: {} })).length, 1);
  });

  it("a change names the request that wrote, and accounts for no read [L6]", () => {
    for (const operation of ["create", "update", "patch"]) {
      assert.deepEqual(foundIn(changed(), [noise(0), writeAt(1, "vault-req_c", operation)]), []);
    }
    const named = (...lines: string[]) => foundIn(changed(), [noise(0), ...lines, noise(4)]).join();
    assert.match(named(), /record 2 names a request of which Vault's log knows no write/);
    assert.match(named(writeAt(1, "vault-req_c", "update", "vcrd_2")), /wrote another credential/);
    assert.match(named(writeAt(1, "vault-req_c", "update", "vcrd_1", "vlt_2")), /wrote another credential/);
    assert.match(named(writeAt(1, "vault-req_c", "delete")), /knows no write/);
    const read = readAt(1, "vault-req_c", { session: "" });
    assert.match(named(read), /knows no write/);
    // Neither one that is open, nor one that a crash cut off, is an excuse for a read of the same credential then.
    const none = { vault_request_id: "", credential_version: "0" };
    const ends: Content[] = [
      { kind: "recovery", reason: "unknown" },
      { kind: "anomaly", request_id: "" },
    ];
    for (const last of ends) {
      const reading = readAt(1, "vault-x", { session: "" });
      const text = foundIn(changed(none, last), [noise(0), reading, noise(4)]).join();
      assert.match(text, /vault-x read credential vcrd_1 by a token of no session; no record names it/);
    }
  });

  it("what Vault wrote or removed is told by a record for that credential at that time, or found [L6]", () => {
    const none = { vault_request_id: "", credential_version: "0" };
    const about = (log: MadeLog, ...lines: string[]) => foundIn(log, [noise(0), ...lines, noise(59)]).join();
    const write = writeAt(1, "vault-w");
    const removal = (at = 1) => writeAt(at, "vault-r", "delete").replace("/data/", "/metadata/");
    const destruction = writeAt(1, "vault-d").replace("/data/", "/destroy/");
    /** The log goes on to the second 50. */
    const long = (log: MadeLog) => {
      while (log.records.length < 50) log.add({ kind: "anomaly", request_id: "" });
      return log;
    };
    const [wrote, removed] = ["vault-w wrote credential vcrd_1", "vault-r removed credential vcrd_1"];
    // By a stranger: nobody asked, or somebody asked for another credential.
    assert.match(about(long(new MadeLog()), write, removal()), new RegExp(`${wrote}; no.*${removed}; no`));
    assert.match(about(changed({ credential_id: "vcrd_2" }), write), new RegExp(wrote));
    // Beside a change that names its own write: another write is nobody's, what it replaced may be destroyed.
    assert.match(about(changed(), writeAt(1, "vault-req_c"), write), new RegExp(`^Vault's request ${wrote}`));
    assert.equal(about(changed(), writeAt(1, "vault-req_c"), destruction), "");
    // A removal has no id: it belongs to what was asked then, and not to what was over long before.
    assert.equal(about(changed(none), removal()), "");
    assert.match(about(long(changed(none)), removal(30)), new RegExp(removed));
    // What is done without a write has written nothing; what failed, was cut off or is open may have.
    assert.match(about(changed(none), write), new RegExp(wrote));
    for (const last of ["vault_unavailable", "unknown"]) {
      const kind = last === "unknown" ? "recovery" : "outcome";
      assert.equal(about(long(changed(none, { kind, reason: last })), writeAt(30, "vault-w")), "");
    }
    assert.equal(about(long(changed(none, { kind: "anomaly", request_id: "" })), writeAt(30, "vault-w")), "");
    // A renewal stores what it was given.
    const renewal = new MadeLog();
    renewal.request("req_r", "sesn_a", { operation: "oauth.refresh" });
    const read = readAt(1, "vault-req_r");
    assert.equal(about(renewal, read, writeAt(2, "vault-w")), "");
  });

  it("a look at a decoy is found whenever it was, answered or not, and has an exit code of its own", () => {
    const planted = {
      kind: "honeytoken",
      request_id: "req_d",
      operation: "vault.create_vault",
      reason: "planted",
    };
    const look = (more: object, vault = "vlt_decoy") => {
      const [text] = [readAt(40, "vault-look", { session: "" }).replace("vlt_1", vault)];
      const entry = JSON.parse(text) as { request: object };
      return JSON.stringify({ ...entry, ...more, request: { ...entry.request, ...more } });
    };
    const foundOf = (line: string, first: Content = planted) => {
      const log = new MadeLog();
      log.add({ ...first, target: "vlt_decoy", credential_id: "" });
      const { findings } = verifyLog({
        ...{ logs: [log.records.map(canonicalText)], checkpoints: [], receipts: [], graceMs: 900_000 },
        vaultAudit: { lines: [line], mount: "ganglion" },
      });
      const told = findings.list.filter(({ kind }) => kind !== "no_anchor").map(({ text }) => text);
      return [findings.exitCode({ strict: false }), ...told].join();
    };
    assert.match(
      foundOf(look({})),
      /^12,Vault's request vault-look .* read credential vcrd_1 in decoy vlt_decoy/,
    );
    assert.match(
      foundOf(look({ error: "permission denied", type: "request" })),
      /^12,.*, which Vault refused/,
    );
    const list = { operation: "list", path: "ganglion/metadata/vaults/vlt_decoy/" };
    assert.match(foundOf(look(list)), /^12,.* list decoy vlt_decoy/);
    for (const area of ["metadata", "subkeys"]) {
      assert.match(foundOf(look({ path: `ganglion/${area}/vaults/vlt_decoy/vcrd_1` })), /^12,/);
    }
    // Written, of another vault, at another mount, or of a vault that somebody reached for and that is none.
    for (const operation of ["create", "update", "delete"])
      assert.match(foundOf(look({ operation })), /^(0$|8,)/);
    assert.match(foundOf(look({}, "vlt_1")), /^0$/);
    assert.match(foundOf(look({ path: "other/data/vaults/vlt_decoy/vcrd_1" })), /^0$/);
    assert.match(foundOf(look({}), { ...planted, reason: "used" }), /^0$/);
  });

  it("a request that Vault does not know is found where its log has been when the request began", () => {
    const vaultLogFrom = (second: number) => found(noise(second), noise(4));
    assert.deepEqual(
      vaultLogFrom(0),
      [2, 3].map((n) => `record ${n} names a request that Vault does not know`),
    );
    // It was read before the first line here; that the answer took longer says nothing.
    assert.deepEqual(vaultLogFrom(2), []);
  });
});
