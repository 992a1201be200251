import assert from "node:assert/strict";
import {
  cleanGitAnswer,
  type GitAnswerKind,
} from "../../../../services/mcp-proxy/egress/git/clean-git-answer.ts";
import {
  createPktReader,
  MAX_PKT_BYTES,
  writePkts,
} from "../../../../services/mcp-proxy/egress/git/pkt-line.ts";
import { readGitTarget } from "../../../../services/mcp-proxy/egress/git/read-git-target.ts";

const SECRET = "ghp_0123456789abcdef";
const line = (text: string | Buffer, band?: number) =>
  writePkts(typeof text === "string" ? Buffer.from(text) : text, band);
const FLUSH = Buffer.from("0000");

async function clean(bytes: Buffer, kind: GitAnswerKind, piece = bytes.length): Promise<Buffer> {
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece);
  }
  const secrets = [{ value: SECRET, label: "vcrd_1" }];
  const parts: Buffer[] = [];
  for await (const part of cleanGitAnswer(pieces(), kind, secrets, { redactions: 0 })) parts.push(part);
  return Buffer.concat(parts);
}

describe("git's wire format", () => {
  it("is cut into lines wherever the pieces end, and written again as it was", async () => {
    const pack = Buffer.concat([Buffer.from("PACK"), Buffer.from([0, 0, 0, 2, 0x1b, 0xff])]);
    const bytes = Buffer.concat([
      line("packfile\n"),
      line(pack, 1),
      line("Counting\r", 2),
      Buffer.from("0001"),
      FLUSH,
      Buffer.from("0002"),
    ]);
    for (let piece = 1; piece <= bytes.length; piece += 1) {
      const texts: string[] = [];
      const reader = createPktReader();
      for (let at = 0; at < bytes.length; at += piece) {
        for (const pkt of reader.push(bytes.subarray(at, at + piece)) ?? []) texts.push(pkt.kind);
      }
      assert.deepEqual(texts, ["data", "data", "data", "mark", "mark", "mark"]);
      assert.ok(!reader.isMidway);
      assert.deepEqual(readBands(await clean(bytes, "upload-pack", piece)), readBands(bytes));
    }
  });

  /** What each band comes to; how it is cut into lines does not matter. */
  function readBands(bytes: Buffer): Record<string, string> {
    const all: Record<string, string> = {};
    for (const pkt of createPktReader().push(bytes) ?? []) {
      if (pkt.kind !== "data") continue;
      const band = pkt.payload[0] ?? 0;
      const key = band <= 3 ? `band ${band}` : "lines";
      const text = pkt.payload.subarray(band <= 3 ? 1 : 0).toString("latin1");
      all[key] = (all[key] ?? "") + text;
    }
    return all;
  }

  it("is refused where it is none", async () => {
    for (const text of ["<html>", "0003", "zzzz", "fff1"]) {
      assert.equal(createPktReader().push(Buffer.from(text)), undefined, text);
    }
    await assert.rejects(clean(Buffer.from("0010half"), "advertisement"), /malformed/);
  });

  it("takes what is longer than a line as several", () => {
    const long = Buffer.alloc(MAX_PKT_BYTES * 2 + 7, 65);
    const pkts = createPktReader().push(writePkts(long, 2)) ?? [];
    assert.equal(pkts.length, 3);
    const back = pkts.map((pkt) => (pkt.kind === "data" ? pkt.payload.subarray(1) : Buffer.alloc(0)));
    assert.ok(Buffer.concat(back).equals(long));
  });

  it("loses a secret that is spread over the lines of a band, wherever they end [A060] [B114]", async () => {
    const text = `key ${SECRET} end\n`;
    for (let cut = 1; cut < text.length; cut += 1) {
      const bytes = Buffer.concat([line(text.slice(0, cut), 2), line(text.slice(cut), 2), FLUSH]);
      const bands = readBands(await clean(bytes, "upload-pack"));
      assert.equal(bands["band 2"], "key [REDACTED:vcrd_1] end\n", String(cut));
    }
    const refs = await clean(
      Buffer.concat([line(`${"a".repeat(40)} refs/heads/${SECRET}\n`), FLUSH]),
      "advertisement",
    );
    assert.ok(refs.includes("refs/heads/[REDACTED:vcrd_1]\n"));
  });

  it("with the secret in a pack is cut, with and without bands", async () => {
    const half = SECRET.length / 2;
    const banded = [line(`PACK${SECRET.slice(0, half)}`, 1), line(SECRET.slice(half), 1), FLUSH];
    await assert.rejects(clean(Buffer.concat(banded), "upload-pack"), { reason: "RESPONSE_WITHHELD" });
    const bare = Buffer.concat([line("NAK\n"), Buffer.from(`PACK ${SECRET} `)]);
    await assert.rejects(clean(bare, "upload-pack", 7), { reason: "RESPONSE_WITHHELD" });
    const harmless = Buffer.concat([line("NAK\n"), Buffer.from("PACK\u001b")]);
    assert.deepEqual(await clean(harmless, "upload-pack", 3), harmless);
  });

  it("has nothing for a terminal to act upon in its texts [A077]", async () => {
    const evil = "\u001b[31m\u0007\u009b\u202e\u2066\u200fok\tgrün\r\n";
    const wanted = "?[31m????????????ok\tgrün\r\n";
    const bytes = Buffer.concat([line(evil, 2), line(evil, 3), FLUSH]);
    const bands = readBands(await clean(bytes, "upload-pack"));
    assert.equal(Buffer.from(bands["band 2"] ?? "", "latin1").toString(), wanted);
    assert.equal(Buffer.from(bands["band 3"] ?? "", "latin1").toString(), wanted);
    const mark = Buffer.from("\u202e\u009b");
    for (let cut = 1; cut < mark.length; cut += 1) {
      const halves = Buffer.concat([line(mark.subarray(0, cut), 2), line(mark.subarray(cut), 2), FLUSH]);
      const text = readBands(await clean(halves, "upload-pack"))["band 2"] ?? "";
      assert.ok(!/[\u202e\u009b]/.test(Buffer.from(text, "latin1").toString()), String(cut));
    }
    const report = Buffer.concat([line(`ng refs/heads/x ${evil}`, 1), FLUSH]);
    assert.ok(!(await clean(report, "receive-pack")).includes(0x1b));
    assert.ok(!(await clean(Buffer.concat([line(`ERR ${evil}`)]), "advertisement")).includes(0x1b));
  });

  it("is asked for by plain addresses only [A071]", () => {
    const target = readGitTarget(
      "GET",
      "/git/GitHub.com:443/acme/team/app.git/info/refs?service=git-receive-pack",
    );
    assert.deepEqual(target, {
      service: "git-receive-pack",
      isAdvertisement: true,
      host: "github.com:443",
      path: "/acme/team/app.git",
    });
    for (const url of [
      "/git/h/a%2fb/info/refs?service=git-upload-pack",
      "/git/h/./a/info/refs?service=git-upload-pack",
      "/git/h/a/../b/info/refs?service=git-upload-pack",
      "/git/h/info/refs?service=git-upload-pack",
      "/git/h:x/a/info/refs?service=git-upload-pack",
      "/git/h/a\\b/info/refs?service=git-upload-pack",
    ]) {
      assert.throws(() => readGitTarget("GET", url), { reason: "URL_NOT_CANONICAL" }, url);
    }
  });
});
