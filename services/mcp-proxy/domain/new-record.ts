/** Which step of a request a record stands for, or what happened to the log, a session or a key. */
export type RecordKind =
  | "decision"
  | "dispatch"
  | "outcome"
  | "recovery"
  | "log_open"
  | "log_close"
  | "session_end"
  | "anomaly"
  | "key_change"
  | "policy_change"
  | "honeytoken";

/** A record before it has a place in the log. Field names are the columns'. */
export interface NewRecord {
  kind: RecordKind;
  request_id: string;
  session_id: string;
  workspace_id: string;
  epoch: string;
  caller: string;
  token_id: string;
  operation: string;
  destination: string;
  target: string;
  /** Of the connection that was used; only on outcomes. */
  tls_version: string;
  effect: "" | "allow" | "deny";
  reason: string;
  credential_id: string;
  credential_version: string;
  vault_request_id: string;
  peer_address: string;
  /** SHA-256 of the public key in the server's certificate; only on outcomes. */
  peer_spki_sha256: string;
  status: number;
  request_bytes: number;
  response_bytes: number;
  call_key: string;
  redactions: number;
  /** SHA-256 of the operator's policy that judged; empty where it was not asked. */
  policy_digest: string;
  /** Rule of the policy that decided. */
  rule_id: string;
  /** A few words for kinds that stand for no request; of a hand's request the names of its sealed tokens. */
  detail: string;
  instance: string;
  boot_id: string;
}

const MAX_CHARS = 512;

/** A record with nothing in it but its kind and request (empty: none); the rest is filled in by spreading. */
export function blankRecord(kind: RecordKind, requestId = ""): Omit<NewRecord, "instance" | "boot_id"> {
  return {
    kind,
    request_id: requestId,
    session_id: "",
    workspace_id: "",
    epoch: "0",
    caller: "",
    token_id: "",
    operation: "",
    destination: "",
    target: "",
    tls_version: "",
    effect: "",
    reason: "",
    credential_id: "",
    credential_version: "0",
    vault_request_id: "",
    peer_address: "",
    peer_spki_sha256: "",
    status: 0,
    request_bytes: 0,
    response_bytes: 0,
    call_key: "",
    redactions: 0,
    policy_digest: "",
    rule_id: "",
    detail: "",
  };
}

/** Text for a record: control characters escaped, bounded, never half a surrogate pair. */
export function recordText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is escaped
  const clean = text.toWellFormed().replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  return clean.length > MAX_CHARS ? `${clean.slice(0, MAX_CHARS - 1).toWellFormed()}…` : clean;
}
