import { createHash } from "node:crypto";

const TEXTS = [
  "boot_id",
  "call_key",
  "caller",
  "created_at",
  "credential_id",
  "destination",
  "detail",
  "effect",
  "hash",
  "instance",
  "kind",
  "log_id",
  "operation",
  "peer_address",
  "policy_digest",
  "prev",
  "reason",
  "request_id",
  "rule_id",
  "session_id",
  "target",
  "token_id",
  "vault_request_id",
  "workspace_id",
] as const;
const INT64S = [
  "credential_version",
  "epoch",
  "record_count",
  "redactions",
  "request_bytes",
  "response_bytes",
  "sequence",
] as const;
const INT32S = ["status", "v"] as const;

/** Texts that records have since version 2 of the format. */
const TEXTS_OF_2 = ["peer_spki_sha256", "tls_version"] as const;

/** And since version 3. */
const TEXTS_OF_3 = [
  "build",
  "caller_cert_sha256",
  "hmac_key_id",
  "request_body_hmac",
  "response_body_hmac",
  "token_audience",
  "upstream_effect",
  "vault_token_accessor_hmac",
] as const;
const FLAG_OF_3 = "response_withheld";

/** A record of the audit log as docs/AUDIT_FORMAT.md describes it. */
export type AuditRecord = Readonly<
  Record<(typeof TEXTS)[number], string> &
    Partial<Record<(typeof TEXTS_OF_2)[number] | (typeof TEXTS_OF_3)[number], string>> &
    Partial<Record<typeof FLAG_OF_3, boolean>> &
    Record<(typeof INT64S)[number], string> &
    Record<(typeof INT32S)[number], number>
>;

/** True for a record of a change of a vault, a credential or a session's binding: what it names was changed, not used. */
export function isChange({ operation }: Pick<AuditRecord, "operation">): boolean {
  return operation.startsWith("vault.") || isOfBinding({ operation });
}

/** True for a record of a change of what a session may use. */
export function isOfBinding({ operation }: Pick<AuditRecord, "operation">): boolean {
  return operation.startsWith("binding.");
}

/** Keys of each version that there is. */
const FORMATS: ReadonlyMap<unknown, { texts: readonly string[]; flags: readonly string[] }> = new Map([
  [1, { texts: TEXTS, flags: [] }],
  [2, { texts: [...TEXTS, ...TEXTS_OF_2], flags: [] }],
  [3, { texts: [...TEXTS, ...TEXTS_OF_2, ...TEXTS_OF_3], flags: [FLAG_OF_3] }],
]);
const IS_INT64 = /^(0|-?[1-9][0-9]{0,18})$/;
const IS_HASH = /^[0-9a-f]{64}$/;

/** A line of an export: its record, and what is wrong with it. */
export interface AuditLine {
  readonly text: string;
  /** Absent when the line says nothing that could be used. */
  readonly record?: AuditRecord;
  /** Why the line was altered; absent for a sound one. */
  readonly fault?: string;
}

/** Reads a line of an export. A sound one is canonical, has exactly the format's keys, and the hash of its content. */
export function readAuditLine(text: string): AuditLine {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { text, fault: "is not JSON" };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { text, fault: "is not an object" };
  }
  const fault = faultOf(value as Record<string, unknown>);
  if (fault) return { text, fault };
  const record = value as AuditRecord;
  if (canonical(record) !== text) return { text, record, fault: "is not in canonical form" };
  if (contentHash(record) !== record.hash)
    return { text, record, fault: "does not have the hash of its content" };
  return { text, record };
}

/**
 * The canonical form (RFC 8785) of a flat object with ASCII keys: JSON.stringify escapes exactly what that standard
 * wants escaped, and sorting is all that is left to do.
 */
export function canonical(object: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(
    Object.fromEntries(
      Object.keys(object)
        .sort()
        .map((key) => [key, object[key]]),
    ),
  );
}

/** The hash that a record must state: over everything in it but the hash. */
export function contentHash(record: AuditRecord): string {
  const { hash: _, ...content } = record;
  return createHash("sha256").update("\0").update(canonical(content)).digest("hex");
}

function faultOf(object: Record<string, unknown>): string | undefined {
  const format = FORMATS.get(object.v);
  if (!format) return "has another format version";
  const { texts, flags } = format;
  const known = [...texts, ...flags, ...INT64S, ...INT32S];
  if (Object.keys(object).length !== known.length || known.some((key) => !Object.hasOwn(object, key)))
    return "does not have the format's keys";
  const text = texts.find((key) => typeof object[key] !== "string");
  const int64 = INT64S.find((key) => typeof object[key] !== "string" || !IS_INT64.test(object[key]));
  const int32 = INT32S.find((key) => !Number.isInteger(object[key]));
  const flag = flags.find((key) => typeof object[key] !== "boolean");
  const wrong = text ?? int64 ?? int32 ?? flag;
  if (wrong) return `has a ${wrong} of another type`;
  const { hash, prev, sequence } = object as AuditRecord;
  if (!IS_HASH.test(hash) || !IS_HASH.test(prev)) return "has no proper hash";
  return BigInt(sequence) >= 1n ? undefined : "has no place in the log";
}
