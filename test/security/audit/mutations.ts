import { asOf, type Content, canonicalText, digestOf, MadeLog, sealed, signedNote } from "./made-log.ts";
import { FIRST_CHECKPOINT, type Files, soundLog } from "./sound-log.ts";

/** One way to damage a log, and the exit code that names it. */
export interface Mutation {
  readonly name: string;
  readonly code: number;
  readonly apply: (files: Files, log: MadeLog) => void;
}

const recordAt = (files: Files, index: number) => JSON.parse(files.lines[index] as string) as Content;
const put = (files: Files, index: number, record: Content) => {
  files.lines[index] = canonicalText(record);
};
const change = (index: number, more: Content) => (files: Files) =>
  put(files, index, { ...recordAt(files, index), ...more });
/** Changes a record and writes the chain anew from there, as somebody with all rights on the database could. */
const rewrite = (index: number, more: Content) => (files: Files) =>
  rechain(files, index, (r) => ({ ...r, ...more }));

function rechain(files: Files, from: number, edit: (record: Content) => Content): void {
  let prev = from === 0 ? "0".repeat(64) : String(recordAt(files, from - 1).hash);
  for (let i = from; i < files.lines.length; i++) {
    const record = recordAt(files, i);
    const next = sealed({ ...(i === from ? edit(record) : record), prev, sequence: String(i + 1) });
    put(files, i, next);
    prev = String(next.hash);
  }
}

/** Signs a note for these files as their sound log would have, with a chain of checkpoints that fits. */
function sign(log: MadeLog, files: Files, size: number, hash: string, keyIndex = 1): string {
  const prev = files.notes.length > 0 ? digestOf(files.notes.at(-1) as string) : "0".repeat(64);
  return signedNote(log.logId, size, hash, prev, log.keys[keyIndex]!);
}

/** Ways to alter, drop, reorder, insert, truncate or fork a log. */
export const MUTATIONS: readonly Mutation[] = [
  // Altered: one record is not what was written.
  { name: "a destination is changed", code: 2, apply: change(4, { destination: "https://other.test:443" }) },
  { name: "a denial becomes an allowance", code: 2, apply: change(10, { effect: "allow" }) },
  { name: "a session is put on another's account", code: 2, apply: change(5, { session_id: "sesn_b" }) },
  { name: "a time is moved", code: 2, apply: change(6, { created_at: "2026-11-30T09:00:00.000000Z" }) },
  { name: "a hash is replaced", code: 2, apply: change(7, { hash: "f".repeat(64) }) },
  { name: "a predecessor's hash is replaced", code: 2, apply: change(7, { prev: "f".repeat(64) }) },
  { name: "a number becomes a text", code: 2, apply: change(3, { status: "200" }) },
  { name: "a member is added", code: 2, apply: change(3, { note: "nothing happened" }) },
  { name: "another format version is claimed", code: 2, apply: change(3, { v: 4 }) },
  { name: "a record claims to be of the version before", code: 2, apply: change(3, { v: 1 }) },
  {
    name: "the key of the server that was met is changed",
    code: 2,
    apply: change(3, { peer_spki_sha256: "6".repeat(64) }),
  },
  { name: "plain HTTP is claimed where there was TLS", code: 2, apply: change(9, { tls_version: "none" }) },
  { name: "the use of a decoy becomes its making", code: 2, apply: change(22, { reason: "planted" }) },
  { name: "the use of a decoy becomes an anomaly", code: 2, apply: change(22, { kind: "anomaly" }) },
  { name: "a record of version 2 claims to be of the third", code: 2, apply: change(3, { v: 3 }) },
  { name: "a record of version 3 claims to be of the second", code: 2, apply: change(6, { v: 2 }) },
  { name: "another certificate asked", code: 2, apply: change(4, { caller_cert_sha256: "d".repeat(64) }) },
  { name: "a harness's token becomes a hand's", code: 2, apply: change(4, { token_audience: "hand" }) },
  { name: "another body was sent", code: 2, apply: change(6, { request_body_hmac: "3".repeat(64) }) },
  { name: "another answer came", code: 2, apply: change(6, { response_body_hmac: "" }) },
  {
    name: "another of Vault's tokens read the secret",
    code: 2,
    apply: change(5, { vault_token_accessor_hmac: "b".repeat(64) }),
  },
  { name: "another key made the HMACs", code: 2, apply: change(6, { hmac_key_id: "ffffffff" }) },
  {
    name: "an answer that was passed on is said to be withheld",
    code: 2,
    apply: change(6, { response_withheld: true }),
  },
  {
    name: "whether an answer was withheld becomes a text",
    code: 2,
    apply: (f) => put(f, 6, sealed({ ...recordAt(f, 6), response_withheld: "false" })),
  },
  {
    name: "what was answered is said not to have left",
    code: 2,
    apply: change(6, { upstream_effect: "none" }),
  },
  { name: "another build wrote it", code: 2, apply: change(6, { build: "ganglion 9.9.9" }) },
  {
    name: "what is known of TLS is left out, as version 1 had it",
    code: 3,
    apply: (f) => put(f, 3, sealed(asOf(1, { ...recordAt(f, 3), v: 1 }))),
  },
  {
    name: "what is known of bodies is left out, as version 2 had it",
    code: 3,
    apply: (f) => put(f, 6, sealed(asOf(2, { ...recordAt(f, 6), v: 2 }))),
  },
  {
    name: "a member is removed",
    code: 2,
    apply: (files) => {
      const { rule_id: _, ...rest } = recordAt(files, 3);
      put(files, 3, rest);
    },
  },
  {
    name: "white space is added",
    code: 2,
    apply: (f) => {
      f.lines[2] = ` ${f.lines[2]}`;
    },
  },
  {
    name: "members stand in another order",
    code: 2,
    apply: (f) => {
      f.lines[2] = JSON.stringify(Object.fromEntries(Object.entries(recordAt(f, 2)).reverse()));
    },
  },
  {
    name: "a member comes twice",
    code: 2,
    apply: (f) => {
      f.lines[2] = `${f.lines[2]?.slice(0, -1)},"reason":"other"}`;
    },
  },
  {
    name: "a letter is escaped that need not be",
    code: 2,
    apply: (f) => {
      f.lines[0] = f.lines[0]!.replace("ü", "\\u00fc");
    },
  },
  {
    name: "a line is cut",
    code: 2,
    apply: (f) => {
      f.lines[4] = f.lines[4]!.slice(0, 100);
    },
  },
  { name: "a line is no JSON", code: 2, apply: (f) => void f.lines.splice(4, 0, "# nothing to see") },
  { name: "a line is a list", code: 2, apply: (f) => void f.lines.splice(4, 0, "[]") },
  { name: "an empty line is put in", code: 2, apply: (f) => void f.lines.splice(4, 0, "") },
  // Order: records that are sound, but not this sequence of them.
  { name: "a record is dropped", code: 3, apply: (f) => void f.lines.splice(5, 1) },
  { name: "a request is dropped whole", code: 3, apply: (f) => void f.lines.splice(1, 3) },
  {
    name: "two records change places",
    code: 3,
    apply: (f) => void f.lines.splice(4, 2, f.lines[5]!, f.lines[4]!),
  },
  { name: "a record comes twice", code: 3, apply: (f) => void f.lines.splice(5, 0, f.lines[5]!) },
  { name: "an old record comes again later", code: 3, apply: (f) => void f.lines.splice(9, 0, f.lines[2]!) },
  { name: "the log is turned round", code: 3, apply: (f) => void f.lines.reverse() },
  {
    name: "a record is replaced by another sound one",
    code: 3,
    apply: (f) => put(f, 5, sealed({ ...recordAt(f, 5), target: "delete" })),
  },
  {
    name: "a sound record is put between two",
    code: 3,
    apply: (f) => {
      const { hash } = recordAt(f, 5);
      const made = sealed({
        ...recordAt(f, 6),
        prev: String(hash),
        request_id: "req_new",
        kind: "decision",
        effect: "deny",
      });
      f.lines.splice(6, 0, canonicalText(made));
    },
  },
  // The beginning.
  { name: "the first record is dropped", code: 5, apply: (f) => void f.lines.splice(0, 1) },
  { name: "the first half is dropped", code: 5, apply: (f) => void f.lines.splice(0, 7) },
  {
    name: "what begins behind a checkpoint does not continue it",
    code: 7,
    apply: (f) => {
      f.lines = f.lines.slice(FIRST_CHECKPOINT, FIRST_CHECKPOINT + 1);
      put(f, 0, sealed({ ...recordAt(f, 0), prev: "f".repeat(64) }));
      f.notes = f.notes.slice(0, 1);
      f.receipt = "";
    },
  },
  // The end.
  { name: "the last record is dropped", code: 4, apply: (f) => void f.lines.pop() },
  { name: "the last third is dropped", code: 4, apply: (f) => void f.lines.splice(12) },
  { name: "everything is dropped", code: 10, apply: (f) => void f.lines.splice(0) },
  {
    name: "what a receipt covers is dropped, with the checkpoints",
    code: 4,
    apply: (f) => {
      f.lines.splice(11);
      f.notes.splice(1);
    },
  },
  // Rewritten: a chain that is sound in itself and not the one that was signed.
  {
    name: "a record is changed and the chain written anew",
    code: 7,
    apply: rewrite(4, { target: "harmless" }),
  },
  {
    name: "the newest record is changed and hashed anew",
    code: 7,
    apply: rewrite(19, { reason: "unknown" }),
  },
  {
    name: "the key of the server that was met is changed and the chain written anew",
    code: 7,
    apply: rewrite(6, { peer_spki_sha256: "6".repeat(64) }),
  },
  {
    name: "the use of a decoy is another's and the chain written anew",
    code: 7,
    apply: rewrite(22, { caller: "spiffe://ganglion.local/operator/somebody" }),
  },
  {
    name: "the use of a decoy is dropped and the chain written anew",
    code: 4,
    apply: (f) => {
      f.lines.splice(22, 1);
      rechain(f, 22, (r) => r);
    },
  },
  {
    name: "a record is dropped and the chain written anew",
    code: 7,
    apply: (f) => {
      f.lines.splice(10, 1);
      f.lines.push(f.lines.at(-1)!);
      rechain(f, 10, (r) => r);
      const last = recordAt(f, f.lines.length - 1);
      put(f, f.lines.length - 1, sealed({ ...last, kind: "anomaly", request_id: "" }));
    },
  },
  {
    name: "the receipt's record is changed and the chain written anew, without checkpoints",
    code: 7,
    apply: (f) => {
      f.notes.splice(0);
      rewrite(14, { record_count: "3" })(f);
    },
  },
  {
    name: "two checkpoints of one size",
    code: 7,
    apply: (f, log) =>
      void f.notes.push(sign(log, { ...f, notes: f.notes.slice(0, 2) }, log.records.length, "a".repeat(64))),
  },
  {
    name: "a checkpoint of another history for a size in between",
    code: 7,
    apply: (f, log) =>
      void f.notes.splice(0, f.notes.length, sign(log, { ...f, notes: [] }, 6, "b".repeat(64))),
  },
  {
    name: "a checkpoint in the middle is dropped from the file of checkpoints",
    code: 7,
    apply: (f) => void f.notes.splice(1, 1),
  },
  { name: "checkpoints stand in another order", code: 7, apply: (f) => void f.notes.reverse() },
  {
    name: "two records of one place",
    code: 3,
    apply: (f) => void f.lines.splice(5, 0, canonicalText(sealed({ ...recordAt(f, 5), target: "delete" }))),
  },
  // Signatures and keys.
  {
    name: "a checkpoint's size is changed",
    code: 6,
    apply: (f) => {
      f.notes[1] = f.notes[1]!.replace("\n15\n", "\n14\n");
    },
  },
  {
    name: "a signature is cut off",
    code: 6,
    apply: (f) => {
      f.notes[1] = f.notes[1]!.replace(/— .*\n/, "— x y\n");
    },
  },
  {
    name: "a checkpoint is signed by a key that nobody knows",
    code: 6,
    apply: (f) => {
      const stranger = new MadeLog();
      const log = { logId: recordAt(f, 0).log_id as string };
      f.notes[2] = signedNote(
        log.logId,
        20,
        String(recordAt(f, 19).hash),
        digestOf(f.notes[1]!),
        stranger.keys[0]!,
      );
    },
  },
  {
    name: "a checkpoint of another log",
    code: 6,
    apply: (f) => {
      const other = soundLog();
      f.notes[2] = other.files.notes[2]!;
    },
  },
  {
    name: "the second key is not signed by the first",
    code: 6,
    apply: (f) => {
      const keys = JSON.parse(f.keys);
      keys.keys[1].signature = Buffer.alloc(64).toString("base64");
      f.keys = JSON.stringify(keys);
    },
  },
  {
    name: "the second key was slipped in unsigned",
    code: 6,
    apply: (f) => {
      const keys = JSON.parse(f.keys);
      delete keys.keys[1].signed_by;
      delete keys.keys[1].signature;
      f.keys = JSON.stringify(keys);
    },
  },
  {
    name: "the receipt says another count",
    code: 6,
    apply: (f) => {
      f.receipt = f.receipt.replace('"record_count":"9"', '"record_count":"8"');
    },
  },
  // Requests.
  {
    name: "an outcome is left out and everything signed anew",
    code: 9,
    apply: (f, log) => {
      f.lines.splice(9, 1);
      f.receipt = "";
      rechain(f, 9, (r) => r);
      // An hour later, so that nobody waits for it any more.
      const last = f.lines.length - 1;
      rechain(f, last, (r) => ({ ...r, created_at: "2026-11-30T12:00:00.000000Z" }));
      f.notes.splice(0);
      f.notes.push(sign(log, f, f.lines.length, String(recordAt(f, last).hash)));
    },
  },
  {
    name: "a decision is left out and everything signed anew",
    code: 9,
    apply: (f, log) => {
      f.lines.splice(7, 1);
      f.receipt = "";
      rechain(f, 7, (r) => r);
      f.notes.splice(0);
      f.notes.push(sign(log, f, f.lines.length, String(recordAt(f, f.lines.length - 1).hash)));
    },
  },
  // Nothing outside.
  {
    name: "there is no checkpoint and no receipt",
    code: 11,
    apply: (f) => {
      f.notes.splice(0);
      f.receipt = "";
    },
  },
];
