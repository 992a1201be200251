import { canonicalText, MadeLog } from "./made-log.ts";

/** Files of an audit log, in memory. */
export interface Files {
  lines: string[];
  notes: string[];
  keys: string;
  receipt: string;
}

/** Size of the first checkpoint of `soundLog`. */
export const FIRST_CHECKPOINT = 11;

/** A sound log of two sessions with its checkpoints, keys and a receipt. */
export function soundLog(): { files: Files; log: MadeLog } {
  const log = new MadeLog();
  log.add({
    // From before the format's second version.
    v: 1,
    kind: "log_open",
    caller: "",
    token_id: "",
    operation: "",
    destination: "",
    target: "",
    detail: "ü \u0001",
  });
  // The first request from before its third.
  for (const n of [1, 2, 3]) log.request(`req_a${n}`, "sesn_a", n === 1 ? { v: 2 } : {});
  log.add({
    kind: "decision",
    request_id: "req_denied",
    session_id: "sesn_b",
    effect: "deny",
    reason: "DEST_NOT_ALLOWED",
  });
  log.checkpoint();
  log.request("req_b1", "sesn_b");
  log.add({ kind: "session_end", session_id: "sesn_a", record_count: "9" });
  log.checkpoint();
  log.addKey();
  log.request("req_b2", "sesn_b", { operation: "model" });
  log.add({ kind: "decision", request_id: "req_b3", session_id: "sesn_b", effect: "allow" });
  log.add({
    ...{ kind: "recovery", request_id: "req_b3", session_id: "sesn_b", reason: "not_dispatched" },
    upstream_effect: "none",
  });
  const change = { request_id: "req_c1", operation: "vault.create_credential", target: "vlt_1", epoch: "0" };
  log.add({ ...change, kind: "decision", effect: "allow", vault_request_id: "" });
  const written = { vault_request_id: "vault-req_c1", upstream_effect: "complete" };
  log.add({ ...change, ...written, kind: "outcome", reason: "ok" });
  const decoy = {
    kind: "honeytoken",
    target: "vlt_decoy",
    operation: "vault.validate_credential",
    epoch: "0",
  };
  log.add({ ...decoy, request_id: "req_h1", credential_id: "vcrd_decoy", destination: "", reason: "used" });
  log.add({ kind: "log_close", credential_id: "", target: "" });
  log.checkpoint();
  const receipt = log.receipt("sesn_a");
  return {
    log,
    files: { lines: log.records.map(canonicalText), notes: [...log.notes], keys: log.keyFile(), receipt },
  };
}
