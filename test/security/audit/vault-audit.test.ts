import assert from "node:assert/strict";
import { verifyLog } from "../../../services/cli/audit/verify-log.ts";
import { canonicalText, MadeLog } from "./made-log.ts";

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
  const { findings } = verifyLog({
    logs: [log.records.map(canonicalText)],
    ...{ checkpoints: [], receipts: [], graceMs: 900_000 },
    vaultAudit: { lines: vaultLines, mount: "ganglion" },
  });
  return findings.list.filter(({ kind }) => kind === "vault").map(({ text }) => text);
};
const own = readAt(1, "vault-req_a");
const noise = (second: number) => readAt(second, "vault-write").replace('"read"', '"update"');
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
