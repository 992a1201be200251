import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { RequestTokens } from "../../../../services/mcp-proxy/domain/request-tokens.ts";
import { releaseToHand } from "../../../../services/mcp-proxy/egress/release-to-hand.ts";
import { bytesJoined } from "../../../kit/bytes-joined.ts";
import { unseenTraffic } from "../../../kit/unseen-traffic.ts";

type Headers = Record<string, string | string[]>;

describe("an answer that is more work than others", () => {
  /** Releases an answer with that secret, and says what the hand got. */
  const release = async (headers: Headers, body: Readable, value: string) => {
    let passed: Headers = {};
    const pieces: Buffer[] = [];
    const response = {
      req: { httpVersion: "1.1" },
      writeHead: (_status: number, given: Headers) => {
        passed = given;
        return { flushHeaders: () => {} };
      },
      write: (bytes: Buffer) => pieces.push(bytes) > 0,
      end: () => {},
    } as unknown as ServerResponse;
    await releaseToHand({
      answer: { status: 200, headers, body },
      response,
      secrets: [{ value, label: "vcrd_a" }],
      tokens: { minting: { fields: [], elsewhere: [] }, known: [], detail: "" } as unknown as RequestTokens,
      signal: new AbortController().signal,
      traffic: unseenTraffic(),
      finish: async () => {},
    });
    return { passed, text: Buffer.concat(pieces).toString() };
  };

  it("has very many headers: it is searched in a moment, also for a secret that is as long as one may be [A058, A154]", async () => {
    const value = randomBytes(30_000).toString("hex");
    const headers: Headers = {
      "set-cookie": Array(4000).fill("a"),
      "x-echo": value,
    };
    const begun = performance.now();
    const { passed } = await release(headers, Readable.from([]), value);
    assert.deepEqual([passed["set-cookie"]?.length, passed["x-echo"]], [4000, "[REDACTED:vcrd_a]"]);
    // To write the forms of the secret down anew for each of them takes some ten times as long.
    assert.ok(performance.now() - begun < 2_000, `${performance.now() - begun} ms`);
  });

  it("is JSON that comes byte by byte: what is held back is put together once [A066, A154]", async () => {
    const json = JSON.stringify({ text: "x".repeat(60_000) });
    const copied = await bytesJoined(async () => {
      const bytes = Readable.from(Array.from(Buffer.from(json), (byte) => Buffer.of(byte)));
      const { text } = await release({ "content-type": "application/json" }, bytes, "sk-of-no-worth");
      assert.equal(text, json);
    });
    assert.ok(copied < 1_000_000, `${copied} bytes were copied`);
  });
});
