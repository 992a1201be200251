import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { RequestTokens } from "../../../../services/mcp-proxy/domain/request-tokens.ts";
import { releaseToHand } from "../../../../services/mcp-proxy/egress/release-to-hand.ts";

describe("an answer with very many headers", () => {
  it("is searched in a moment, also for a secret that is as long as one may be [A058, A154]", async () => {
    const value = randomBytes(30_000).toString("hex");
    const headers: Record<string, string | string[]> = {
      "set-cookie": Array(4000).fill("a"),
      "x-echo": value,
    };
    let passed: Record<string, string | string[]> = {};
    const response = {
      req: { httpVersion: "1.1" },
      writeHead: (_status: number, given: typeof passed) => {
        passed = given;
      },
      end: () => {},
    } as unknown as ServerResponse;
    const begun = performance.now();
    await releaseToHand({
      answer: { status: 200, headers, body: Readable.from([]) },
      response,
      secrets: [{ value, label: "vcrd_a" }],
      tokens: { minting: { fields: [], elsewhere: [] }, known: [], detail: "" } as unknown as RequestTokens,
      signal: new AbortController().signal,
      finish: async () => {},
    });
    assert.deepEqual([passed["set-cookie"]?.length, passed["x-echo"]], [4000, "[REDACTED:vcrd_a]"]);
    // To write the forms of the secret down anew for each of them takes some ten times as long.
    assert.ok(performance.now() - begun < 2_000, `${performance.now() - begun} ms`);
  });
});
