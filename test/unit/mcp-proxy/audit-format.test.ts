import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { keyFile } from "../../../services/mcp-proxy/audit/key-file.ts";
import { writerColumns } from "../../../services/mcp-proxy/audit/ledger.ts";
import { canonical, followChain, GENESIS, hashOf } from "../../../services/mcp-proxy/domain/audit-chain.ts";
import { blankRecord, recordText } from "../../../services/mcp-proxy/domain/new-record.ts";
import {
  isSigned,
  keyIdOf,
  originOf,
  parseCheckpoint,
  signCheckpoint,
  vkeyOf,
} from "../../../services/mcp-proxy/domain/signed-note.ts";

const DOCUMENT = readFileSync(new URL("../../../docs/AUDIT_FORMAT.md", import.meta.url), "utf8");
const EXAMPLE = DOCUMENT.slice(DOCUMENT.indexOf("## Example"));
const [WITHOUT_HASH = "", EXPORT = "", KEYS = ""] = [...EXAMPLE.matchAll(/```json\n(.*?)```/gs)].map(
  ([, text]) => text as string,
);
const NOTES = /```text\n(.*?)```/s.exec(EXAMPLE)?.[1] ?? "";
const LINES = EXPORT.trim().split("\n");
// The first test key of RFC 8032.
const SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const KEY = createPrivateKey({
  key: Buffer.from(`302e020100300506032b657004220420${SEED}`, "hex"),
  format: "der",
  type: "pkcs8",
});

describe("the audit log's format, by the example of its document", () => {
  const notes = NOTES.split("\n\n");
  const first = `${notes[0]}\n\n${notes[1]}\n`;
  const second = `${notes[2]}\n\n${notes[3]}\n`;
  const logId = JSON.parse(LINES[0] as string).log_id as string;
  const name = originOf(logId);
  const publicKey = createPublicKey(KEY);
  const signer = { name, keyId: keyIdOf(name, publicKey), key: KEY };
  const known = [{ ...signer, key: publicKey }];

  it("a record's canonical form and hash are what the document says", () => {
    const { hash, ...content } = JSON.parse(LINES[1] as string);
    assert.equal(canonical(content), WITHOUT_HASH.trim());
    assert.equal(hashOf({ ...content, hash }), hash);
    assert.deepEqual(Object.keys(content).sort(), documentedKeys());
  });

  it("the chain holds from the first record to the head that the checkpoint signs", () => {
    const head = followChain(LINES, { sequence: 0n, hash: GENESIS });
    assert.deepEqual({ size: head.sequence, headHash: head.hash }, pick(parseCheckpoint(second)));
  });

  it("a line that is altered, missing, moved or written otherwise breaks it [A145]", () => {
    const [one = "", two = ""] = LINES;
    const broken: [string[], RegExp][] = [
      [[one.replace("sink strict", "sink any"), two], /record 1 was altered/],
      [[two], /record 1 is missing or out of order/],
      [[one, one], /record 2 is missing or out of order/],
      [[one, two.replace('"v":3', '"v": 3')], /record 2 was altered/],
      [[one, two.replace(/"prev":"6/, '"prev":"7')], /record 2 does not follow/],
    ];
    for (const [lines, why] of broken) {
      assert.throws(() => followChain(lines, { sequence: 0n, hash: GENESIS }), why);
    }
  });

  it("checkpoints are signed as the document shows, and only so", () => {
    const digests = [...EXAMPLE.matchAll(/`([0-9a-f]{64})`/g)].map(([, digest]) => digest);
    const [a, b] = [parseCheckpoint(first), parseCheckpoint(second)];
    assert.deepEqual([a?.digest, b?.digest], digests);
    assert.equal(b?.prev, a?.digest);
    assert.ok(a && b && isSigned(first, known) && isSigned(second, known));
    const time = new Date("2026-11-30T10:00:01.260Z");
    assert.equal(signCheckpoint({ ...b, time }, signer).note, second);
    assert.equal(isSigned(second.replace("\n2\n", "\n3\n"), known), false);
    assert.equal(isSigned(second, [{ ...known[0], name: "ganglion/other" } as (typeof known)[0]]), false);
    assert.equal(isSigned(second, []), false);
    assert.equal(isSigned("nonsense", known), false);
    assert.equal(parseCheckpoint(second.replace("ganglion/log_", "ganglion/"))?.size, undefined);
  });

  it("keys.json is what the document shows", () => {
    const createdAt = "2026-11-30T09:59:59.900Z";
    const made = keyFile(logId, [{ keyId: signer.keyId, vkey: vkeyOf(name, publicKey), createdAt }]);
    assert.equal(made, KEYS);
  });

  it("a record has no place for values of credentials, headers, queries or bodies [A147]", () => {
    // Every key that there is, and that none holds or is made from such a value: ids, versions and counts, and of bodies HMACs.
    const own = Object.keys(blankRecord("decision")).concat(
      Object.keys(writerColumns({ instance: "", bootId: "" })),
    );
    const bySql = ["created_at", "log_id", "prev", "record_count", "sequence", "v"];
    assert.deepEqual([...own, ...bySql].sort(), documentedKeys());
    const suspicious = /secret|value|header|body|query|hmac|digest|fingerprint/;
    assert.deepEqual(
      own.filter((key) => suspicious.test(key)),
      [
        "vault_token_accessor_hmac",
        "request_body_hmac",
        "response_body_hmac",
        "policy_digest",
        "hmac_key_id",
      ],
    );
  });

  it("texts are bounded and are whole characters", () => {
    const text = recordText(`${"a".repeat(510)}😀${"b".repeat(10)}`);
    assert.ok(text.isWellFormed() && text.length <= 512);
    assert.equal(recordText("a\u0000\u2028b"), "a\\u0000\\u2028b");
  });

  function documentedKeys(): string[] {
    const table = DOCUMENT.slice(DOCUMENT.indexOf("## Record"), DOCUMENT.indexOf("Texts have at most"));
    const rows = [...table.matchAll(/^\| ((?:`\w+`(?:, )?)+) \|/gm)].map(([, cell]) => cell as string);
    const keys = rows.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, key]) => key as string));
    return keys.filter((key) => key !== "hash").sort();
  }

  function pick(checkpoint: ReturnType<typeof parseCheckpoint>) {
    return { size: checkpoint?.size, headHash: checkpoint?.headHash };
  }
});
