import assert from "node:assert/strict";
import { CallProgress } from "../../../services/mcp-proxy/domain/call-progress.ts";
import type { McpTarget } from "../../../services/mcp-proxy/domain/mcp-caller.ts";
import { createProgressReader } from "../../../services/mcp-proxy/upstream/read-progress.ts";

const NEVER = new AbortController().signal;
const GAP_MS = 20;
const at = (progress: number) => ({ progress, total: 0, message: "" });
const target = (value: string) =>
  ({
    secret: { value, version: 1n, vaultRequestId: "" },
    credential: { credentialId: "vcrd_1" },
  }) as unknown as Pick<McpTarget, "secret" | "credential">;

describe("what a server reports of a call", () => {
  it("a reader who is slow or late has one report waiting, the newest [B092]", async () => {
    const progress = new CallProgress();
    for (let n = 0; n < 10_000; n++) progress.report(at(n));
    const reader = progress.watch(GAP_MS, NEVER);
    assert.equal((await reader.next()).value?.progress, 9999);
    for (let n = 0; n < 10_000; n++) progress.report(at(n));
    assert.equal((await reader.next()).value?.progress, 9999);
    const next = reader.next();
    progress.report(at(1));
    assert.equal((await next).value?.progress, 1);
  });

  it("comes no faster than the gap, however fast it is reported [B092]", async () => {
    const progress = new CallProgress();
    const begunAt = performance.now();
    let n = 0;
    const flood = setInterval(() => progress.report(at(++n)), 1);
    const seen: number[] = [];
    for await (const { progress: one } of progress.watch(GAP_MS, NEVER)) {
      seen.push(one);
      if (seen.length === 5) break;
    }
    clearInterval(flood);
    // Timers may be a millisecond early.
    assert.ok(performance.now() - begunAt >= 4 * (GAP_MS - 1));
    assert.deepEqual(
      seen,
      [...new Set(seen)].sort((a, b) => a - b),
    );
  });

  it("ends with the call, and with the reader, also in between [B092]", async () => {
    const progress = new CallProgress();
    const left = new AbortController();
    const [waiting, leaving, pausing] = [
      progress.watch(GAP_MS, NEVER),
      progress.watch(GAP_MS, left.signal),
      progress.watch(600_000, NEVER),
    ];
    const gone = leaving.next();
    left.abort();
    assert.equal((await gone).done, true);
    progress.report(at(1));
    assert.equal((await pausing.next()).done, false);
    assert.equal((await waiting.next()).done, false);
    const ends = [waiting.next(), pausing.next()];
    progress.end();
    for (const end of ends) assert.equal((await end).done, true);
    assert.equal((await progress.watch(GAP_MS, NEVER).next()).done, true, "nothing after the end");
  });

  it("is a finite number or nothing; what else is wrong is left out [B092]", () => {
    const read = createProgressReader({ secret: undefined, credential: undefined });
    for (const progress of [undefined, "1", Number.NaN, Number.POSITIVE_INFINITY, null]) {
      assert.equal(read({ progress }), undefined);
    }
    for (const total of [undefined, "1", Number.NaN, Number.POSITIVE_INFINITY, -1, 0]) {
      assert.deepEqual(read({ progress: -1, total, message: 7 }), { progress: -1, total: 0, message: "" });
    }
    const long = read({ progress: 1, total: 2, message: `\u0007${"\u{1f600}".repeat(400)}` });
    assert.equal(long?.total, 2);
    assert.ok(long.message.length <= 512 && long.message.isWellFormed());
    assert.ok(long.message.startsWith("\\u0007"));
  });

  it("has no credential in it, nor the beginning of one that was cut [B092] [L5]", () => {
    const secret = "sk-canary-0123456789";
    const reader = createProgressReader(target(secret));
    const read = (message: string) => reader({ progress: 1, message })?.message;
    assert.equal(read(`a ${secret} b`), "a [REDACTED:vcrd_1] b");
    assert.equal(read(Buffer.from(secret).toString("hex")), "[REDACTED:vcrd_1]");
    assert.ok(!read(`${"x".repeat(505)}${secret}`)?.includes("sk-c"));
    assert.equal(read(secret.repeat(4000)), "", "too long to be looked through");
  });

  it("costs little for each report, also where the secret is as long as one may be [B092, A154]", () => {
    const read = createProgressReader(target("s".repeat(65_536)));
    const begun = performance.now();
    for (let n = 0; n < 2_000; n++) assert.equal(read({ progress: n, message: "m" })?.message, "m");
    // To write the forms of the secret down anew for each takes some ten times as long.
    assert.ok(performance.now() - begun < 1_000, `${performance.now() - begun} ms`);
  });
});
