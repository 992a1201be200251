import type { AuditRecord } from "./audit-record.ts";

/** A step of a request's way, for people. */
export type Step = readonly [name: string, value: string];

/**
 * Tells the way of one request from its records: who asked, what was decided by which rule, with which credential, where
 * to, and how it ended. Only what the records say: a step that is not there did not happen.
 */
export function explainRequest(records: readonly AuditRecord[]): Step[] {
  const of = (kind: string) => records.find((record) => record.kind === kind);
  const [decision, dispatch, outcome, recovery] = ["decision", "dispatch", "outcome", "recovery"].map(of);
  const first = decision ?? records[0];
  if (!first) return [];
  const steps: Step[] = [
    ["who", first.caller || "nobody with a certificate of the mesh"],
    [
      "session",
      first.session_id ? `${first.session_id}, epoch ${first.epoch}` : "none: the token names no session",
    ],
    ["token", first.token_id || "none"],
    ["asked", `${first.operation} ${first.target}`.trim()],
    ["to", first.destination || "nowhere: no destination was chosen"],
  ];
  if (first.call_key !== "") steps.push(["tool call", `${first.call_key} in the session's log`]);
  if (decision) {
    const rule = decision.rule_id ? ` by ${decision.rule_id}` : "";
    const why = decision.effect === "deny" ? `denied: ${decision.reason}` : `allowed${rule}`;
    steps.push(["decision", `${why}, record ${decision.sequence} at ${decision.created_at}`]);
  }
  const read = [dispatch, outcome].find((record) => record && record.vault_request_id !== "");
  if (first.credential_id === "") steps.push(["credential", "none"]);
  else {
    const how = read
      ? `version ${read.credential_version}, read by Vault's request ${read.vault_request_id}`
      : "not read";
    steps.push(["credential", `${first.credential_id}, ${how}`]);
  }
  steps.push([
    "sent",
    dispatch
      ? `${dispatch.request_bytes} bytes to ${dispatch.peer_address}, record ${dispatch.sequence} at ${dispatch.created_at}`
      : "nothing",
  ]);
  if (outcome) {
    const status = outcome.status === 0 ? "" : ` with status ${outcome.status}`;
    const removed =
      outcome.redactions === "0" ? "" : `, the credential removed in ${outcome.redactions} places`;
    steps.push([
      "outcome",
      `${outcome.reason}${status}, ${outcome.response_bytes} bytes back${removed}, record ${outcome.sequence} at ${outcome.created_at}`,
    ]);
  }
  if (recovery) {
    steps.push([
      "recovery",
      `${recovery.reason}: the process died, record ${recovery.sequence} at ${recovery.created_at}`,
    ]);
  }
  if (decision?.effect === "allow" && !outcome && !recovery) steps.push(["outcome", "none yet"]);
  return steps;
}
