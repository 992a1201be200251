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
  /** SHA-256 of the certificate that was shown at the door; empty where nobody asks from outside. */
  caller_cert_sha256: string;
  token_id: string;
  /** Which door the token is for; empty where it is not known. */
  token_audience: string;
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
  /** HMAC of the accessor of the Vault token with which the secret was read. */
  vault_token_accessor_hmac: string;
  peer_address: string;
  /** SHA-256 of the public key in the server's certificate; only on outcomes. */
  peer_spki_sha256: string;
  status: number;
  request_bytes: number;
  response_bytes: number;
  /** HMACs of the bodies; only on outcomes. */
  request_body_hmac: string;
  response_body_hmac: string;
  /** An answer came, and it or the rest of it did not reach the caller; only on outcomes. */
  response_withheld: boolean;
  /** How far it came outside; on outcomes and recoveries. */
  upstream_effect: UpstreamEffect;
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
  /** Program and version that writes. */
  build: string;
  /** Id of the key that the writer's HMACs follow from. */
  hmac_key_id: string;
}

/**
 * How far a request came outside of this process: nothing of it left; it left, at least in part, and no whole answer came; it
 * was answered to the end; or nobody knows. What the other side did with it, its status says, if anything.
 */
export type UpstreamEffect = "" | "none" | "sent" | "complete" | "unknown";

/** What says who writes; the ledger adds it. */
export type WriterColumns = Pick<NewRecord, "instance" | "boot_id" | "build" | "hmac_key_id">;

const MAX_CHARS = 512;

/** A record with nothing in it but its kind and request (empty: none); the rest is filled in by spreading. */
export function blankRecord(kind: RecordKind, requestId = ""): Omit<NewRecord, keyof WriterColumns> {
  return {
    kind,
    request_id: requestId,
    session_id: "",
    workspace_id: "",
    epoch: "0",
    caller: "",
    caller_cert_sha256: "",
    token_id: "",
    token_audience: "",
    operation: "",
    destination: "",
    target: "",
    tls_version: "",
    effect: "",
    reason: "",
    credential_id: "",
    credential_version: "0",
    vault_request_id: "",
    vault_token_accessor_hmac: "",
    peer_address: "",
    peer_spki_sha256: "",
    status: 0,
    request_bytes: 0,
    response_bytes: 0,
    request_body_hmac: "",
    response_body_hmac: "",
    response_withheld: false,
    upstream_effect: "",
    call_key: "",
    redactions: 0,
    policy_digest: "",
    rule_id: "",
    detail: "",
  };
}

/** Who asks, as records name them. */
export interface AuditedCaller {
  /** SPIFFE id, or more; empty: mcp-proxy itself. */
  caller: string;
  /** SHA-256 of the certificate that was shown at the door; absent where nobody is there now. */
  callerCert?: string;
}

/** What records say of a caller. */
export function callerColumns({ caller, callerCert = "" }: AuditedCaller) {
  return { caller: recordText(caller), caller_cert_sha256: callerCert };
}

/** Text for a record: control characters escaped, bounded, never half a surrogate pair. */
export function recordText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is escaped
  const clean = text.toWellFormed().replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  return clean.length > MAX_CHARS ? `${clean.slice(0, MAX_CHARS - 1).toWellFormed()}…` : clean;
}
