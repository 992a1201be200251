import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

/** A record before it has a place, hash and predecessor. */
export type Content = Record<string, string | number | boolean>;

/** A pair that signs checkpoints, with the names that docs/AUDIT_FORMAT.md gives it. */
export interface SigningKey {
  readonly id: string;
  readonly vkey: string;
  readonly privateKey: KeyObject;
}

const BLANK: Content = {
  ...{ v: 3, log_id: "", sequence: "0", created_at: "", kind: "", request_id: "", session_id: "" },
  ...{ workspace_id: "wrkspc_default", epoch: "1", caller: "spiffe://ganglion.local/harness/harness-1" },
  ...{
    token_id: "tok_1",
    operation: "mcp_call_tool",
    destination: "https://mcp.good.test:443",
    target: "search",
  },
  ...{
    effect: "",
    reason: "",
    policy_digest: "",
    rule_id: "",
    credential_id: "vcrd_1",
    credential_version: "1",
  },
  ...{
    vault_request_id: "",
    peer_address: "",
    peer_spki_sha256: "",
    tls_version: "",
    caller_cert_sha256: "c".repeat(64),
    token_audience: "harness",
    vault_token_accessor_hmac: "",
    request_body_hmac: "",
    response_body_hmac: "",
    hmac_key_id: "0a1b2c3d",
    response_withheld: false,
    upstream_effect: "",
    build: "ganglion 0.1.0",
    status: 0,
    request_bytes: "0",
    response_bytes: "0",
  },
  ...{
    call_key: "",
    redactions: "0",
    record_count: "0",
    detail: "",
    instance: "mcp-proxy-1",
    boot_id: "boot-1",
  },
  ...{ prev: "", hash: "" },
};

/** Keys that came with later versions of the format. */
const SINCE: readonly [number, readonly string[]][] = [
  [2, ["peer_spki_sha256", "tls_version"]],
  [
    3,
    [
      ...["build", "caller_cert_sha256", "hmac_key_id", "request_body_hmac", "response_body_hmac"],
      ...["response_withheld", "token_audience", "upstream_effect", "vault_token_accessor_hmac"],
    ],
  ],
];

/**
 * A sound audit log written by docs/AUDIT_FORMAT.md and not by the code that writes or reads real ones, so that a misreading
 * on one side cannot hide on the other. Keys and ids are made anew each time.
 */
export class MadeLog {
  readonly logId = `log_${randomBytes(16).toString("hex")}`;
  readonly keys: SigningKey[] = [];
  readonly records: Content[] = [];
  readonly notes: string[] = [];
  #keyEntries: Record<string, unknown>[] = [];
  #lastDigest = "0".repeat(64);

  constructor() {
    this.addKey();
  }

  /** Adds a key, signed by the one before it. */
  addKey(): SigningKey {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
    const name = `ganglion/${this.logId}`;
    const id = createHash("sha256")
      .update(Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(1), raw]))
      .digest("hex")
      .slice(0, 8);
    const vkey = `${name}+${id}+${Buffer.concat([Buffer.of(1), raw]).toString("base64")}`;
    const createdAt = "2026-11-30T10:00:00.000Z";
    const before = this.keys.at(-1);
    const said = Buffer.from(`ganglion audit key v1\n${vkey}\n${createdAt}\n`);
    this.#keyEntries.push({
      key_id: id,
      vkey,
      created_at: createdAt,
      ...(before && {
        signed_by: before.id,
        signature: sign(null, said, before.privateKey).toString("base64"),
      }),
    });
    const key = { id, vkey, privateKey };
    this.keys.push(key);
    return key;
  }

  /** Appends a record; one of an older version of the format has none of the keys that came later. */
  add(content: Content): Content {
    const sequence = this.records.length + 1;
    const at = new Date(Date.UTC(2026, 10, 30, 10, 0, sequence)).toISOString().replace("Z", "000Z");
    const record = sealed({
      ...asOf(Number(content.v ?? BLANK.v), {
        ...BLANK,
        ...{ log_id: this.logId, sequence: String(sequence), created_at: at },
        ...content,
      }),
      prev: String(this.records.at(-1)?.hash ?? "0".repeat(64)),
    });
    this.records.push(record);
    return record;
  }

  /** Appends an allowed request with all of its records. */
  request(id: string, sessionId: string, more: Content = {}): void {
    const common = { request_id: id, session_id: sessionId, ...more };
    const read = {
      ...common,
      ...{ vault_request_id: `vault-${id}`, vault_token_accessor_hmac: "a".repeat(64) },
      peer_address: "203.0.113.7",
    };
    this.add({ ...common, kind: "decision", effect: "allow" });
    this.add({ ...read, kind: "dispatch", request_bytes: "120" });
    const peer = { tls_version: "TLSv1.3", peer_spki_sha256: "5".repeat(64) };
    const bodies = { request_body_hmac: "1".repeat(64), response_body_hmac: "2".repeat(64) };
    const came = { status: 200, response_bytes: "90", upstream_effect: "complete" };
    this.add({ ...read, ...peer, ...bodies, ...came, kind: "outcome", reason: "ok" });
  }

  /** Signs a checkpoint over the first `size` records (all, if not said otherwise). */
  checkpoint(size = this.records.length, key = this.keys.at(-1) as SigningKey): string {
    const note = signedNote(this.logId, size, String(this.records[size - 1]?.hash), this.#lastDigest, key);
    this.#lastDigest = digestOf(note);
    this.notes.push(note);
    return note;
  }

  /** keys.json. */
  keyFile(): string {
    return JSON.stringify({ v: 1, log_id: this.logId, keys: this.#keyEntries }, null, 2);
  }

  /** A receipt for a session whose end is in the log, with the checkpoint that was signed last. */
  receipt(sessionId: string): string {
    const record = this.records.find(
      ({ kind, session_id: id }) => kind === "session_end" && id === sessionId,
    );
    const checkpoint = this.notes.at(-1);
    return JSON.stringify({ v: 1, log_id: this.logId, session_id: sessionId, record, checkpoint });
  }
}

/** A record without the keys that its version does not have. */
export function asOf(version: number, content: Content): Content {
  const later = new Set(SINCE.flatMap(([since, keys]) => (since > version ? keys : [])));
  return Object.fromEntries(Object.entries(content).filter(([key]) => !later.has(key)));
}

/** Gives a record the hash of its content. */
export function sealed({ hash: _, ...content }: Content): Content {
  return {
    ...content,
    hash: createHash("sha256")
      .update(`\0${canonicalText(content)}`)
      .digest("hex"),
  };
}

/** The canonical form: sorted keys, no white space. */
export function canonicalText(content: Content): string {
  const members = Object.keys(content)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${JSON.stringify(content[key])}`);
  return `{${members.join(",")}}`;
}

/** A checkpoint note. */
export function signedNote(logId: string, size: number, hash: string, prev: string, key: SigningKey): string {
  const head = Buffer.from(hash, "hex").toString("base64");
  const text = `ganglion/${logId}\n${size}\n${head}\nprev ${prev}\ntime 2026-11-30T11:00:00.000Z\n`;
  const signature = Buffer.concat([
    Buffer.from(key.id, "hex"),
    sign(null, Buffer.from(text), key.privateKey),
  ]);
  return `${text}\n— ganglion/${logId} ${signature.toString("base64")}\n`;
}

/** The digest by which the next checkpoint names a note. */
export function digestOf(note: string): string {
  return createHash("sha256")
    .update(note.slice(0, note.indexOf("\n\n") + 1))
    .digest("hex");
}
