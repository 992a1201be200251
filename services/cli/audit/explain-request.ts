import { type AuditRecord, isChange, isOfBinding } from "./audit-record.ts";

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
  if (first.kind === "honeytoken") return explainDecoy(first);
  if (isChange(first)) return explainChange(first, { decision, outcome, recovery });
  const steps: Step[] = [
    ["who", first.caller || "nobody with a certificate of the mesh"],
    ...certificateOf(first),
    [
      "session",
      first.session_id ? `${first.session_id}, epoch ${first.epoch}` : "none: the token names no session",
    ],
    [
      "token",
      first.token_audience ? `${first.token_id}, for a ${first.token_audience}` : first.token_id || "none",
    ],
    ["asked", `${first.operation} ${first.target}`.trim()],
    ["to", first.destination || "nowhere: no destination was chosen"],
  ];
  if (first.call_key !== "") steps.push(["tool call", `${first.call_key} in the session's log`]);
  if (decision) steps.push(decisionOf(decision));
  const read = [dispatch, outcome].find((record) => record && record.vault_request_id !== "");
  if (first.credential_id === "") steps.push(["credential", "none"]);
  else {
    const how = read
      ? `version ${read.credential_version}, read by Vault's request ${read.vault_request_id}${heldBy(read)}`
      : "not read";
    steps.push(["credential", `${first.credential_id}, ${how}`]);
  }
  const tokens = [outcome, dispatch, decision].find((record) => record && record.detail !== "");
  if (tokens) steps.push(["sealed tokens", tokens.detail]);
  steps.push([
    "sent",
    dispatch
      ? `${dispatch.request_bytes} bytes to ${dispatch.peer_address}, record ${dispatch.sequence} at ${dispatch.created_at}`
      : "nothing",
  ]);
  if (dispatch) steps.push(["secured", securityOf(outcome)]);
  steps.push(...bodiesOf(outcome));
  if (outcome) {
    const status = outcome.status === 0 ? "" : ` with status ${outcome.status}`;
    const removed =
      outcome.redactions === "0" ? "" : `, the credential removed in ${outcome.redactions} places`;
    const withheld = outcome.response_withheld ? ", the answer or the rest of it was withheld" : "";
    steps.push([
      "outcome",
      `${outcome.reason}${status}, ${outcome.response_bytes} bytes back${removed}${withheld}, record ${outcome.sequence} at ${outcome.created_at}`,
    ]);
  }
  steps.push(
    ...endOf({ decision, outcome, recovery }),
    ...effectOf(outcome ?? recovery),
    ...writersOf(records),
  );
  return steps;
}

/** The certificate that was shown at the door. */
function certificateOf({ caller_cert_sha256: digest }: AuditRecord): Step[] {
  return digest ? [["certificate", `sha256:${digest}`]] : [];
}

function heldBy({ vault_token_accessor_hmac: hmac, hmac_key_id: key }: AuditRecord): string {
  return hmac ? ` with the token whose accessor has hmac:${hmac} (key ${key})` : "";
}

/** What is known of the bodies: never what they were. */
function bodiesOf(outcome: AuditRecord | undefined): Step[] {
  const { request_body_hmac: sent, response_body_hmac: came, hmac_key_id: key } = outcome ?? {};
  const steps: Step[] = [];
  if (sent) steps.push(["body sent", `hmac:${sent} (key ${key})`]);
  if (came) steps.push(["body back", `hmac:${came} (key ${key})`]);
  return steps;
}

const EFFECTS: Readonly<Record<string, string>> = {
  none: "none: nothing left",
  sent: "sent: it left, at least in part, and was not seen to be answered to the end",
  complete: "complete: it was answered to the end",
  unknown: "unknown: it may have left, or not",
};
const CHANGE_EFFECTS: Readonly<Record<string, string>> = {
  complete: "complete: the change was made",
  unknown: "unknown: it may have been made, in part or whole, or not",
};

/** How far it came outside; records of older versions do not say. */
function effectOf(end: AuditRecord | undefined): Step[] {
  const effect = end?.upstream_effect;
  if (!end || !effect) return [];
  const words = isChange(end) ? CHANGE_EFFECTS : EFFECTS;
  return [["effect", words[effect] ?? effect]];
}

/** Which programs wrote the records. */
function writersOf(records: readonly AuditRecord[]): Step[] {
  const writers = new Set(
    records.flatMap(({ build, instance }) => (build ? [`${build} as ${instance}`] : [])),
  );
  return writers.size === 0 ? [] : [["written by", [...writers].join(", ")]];
}

/** What a honeytoken record says: there is one for each request. */
function explainDecoy(record: AuditRecord): Step[] {
  const {
    caller,
    operation,
    target,
    workspace_id: workspace,
    session_id: session,
    credential_id: credential,
  } = record;
  const steps: Step[] = [
    ["who", caller],
    ...certificateOf(record),
    ["asked", `${operation} of decoy ${target}${workspace && ` in ${workspace}`}`],
  ];
  if (session !== "") steps.push(["session", session]);
  if (credential !== "") steps.push(["credential", `${credential}, not read`]);
  const what = record.reason === "planted" ? "the decoy was made" : "refused: nobody may use a decoy";
  steps.push(["honeytoken", `${what}, record ${record.sequence} at ${record.created_at}`]);
  return steps;
}

/** How the connection was secured, over which a request went. */
function securityOf(outcome: AuditRecord | undefined): string {
  const { v, tls_version: tls, peer_spki_sha256: key } = outcome ?? {};
  if (v === 1) return "not recorded in this version of the log";
  if (!tls) return "not known: no connection is recorded";
  if (tls === "none") return "not at all: plain HTTP";
  if (tls === "tunnel") return "by the hand's own TLS, which was not looked into";
  return `${tls}, the server's key sha256:${key || "(none seen)"}`;
}

type Steps = Partial<Record<"decision" | "outcome" | "recovery", AuditRecord | undefined>>;

/** The way of a change of a vault or credential: nothing is sent, and no session asks. */
function explainChange(first: AuditRecord, { decision, outcome, recovery }: Steps): Step[] {
  const vault = isOfBinding(first)
    ? `for session ${first.session_id}${first.target && ` with ${first.target}`}`
    : first.target
      ? `in vault ${first.target}`
      : "in a vault that is not known";
  const steps: Step[] = [
    ["who", first.caller || "mcp-proxy itself, to finish what was begun"],
    ...certificateOf(first),
    ["asked", `${first.operation} ${vault}${first.workspace_id && ` of ${first.workspace_id}`}`],
  ];
  if (decision) steps.push(decisionOf(decision));
  const { credential_id: credential } = outcome ?? first;
  const written =
    outcome && outcome.credential_version !== "0"
      ? `, version ${outcome.credential_version} written by Vault's request ${outcome.vault_request_id || "(no id)"}`
      : "";
  if (credential !== "") steps.push(["credential", `${credential}${written}`]);
  if (outcome) {
    steps.push(["outcome", `${outcome.reason}, record ${outcome.sequence} at ${outcome.created_at}`]);
  }
  steps.push(...endOf({ decision, outcome, recovery }), ...effectOf(outcome ?? recovery));
  return steps;
}

function decisionOf(decision: AuditRecord): Step {
  const rule = decision.rule_id ? ` by ${decision.rule_id}` : "";
  const why = decision.effect === "deny" ? `denied: ${decision.reason}` : `allowed${rule}`;
  return ["decision", `${why}, record ${decision.sequence} at ${decision.created_at}`];
}

/** What stands where there is no outcome. */
function endOf({ decision, outcome, recovery }: Steps): Step[] {
  if (recovery) {
    const what = `${recovery.reason}: the process died, record ${recovery.sequence} at ${recovery.created_at}`;
    return [["recovery", what]];
  }
  return decision?.effect === "allow" && !outcome ? [["outcome", "none yet"]] : [];
}
