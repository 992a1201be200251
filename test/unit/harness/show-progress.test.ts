import assert from "node:assert/strict";
import type { McpCall, McpProgress } from "../../../services/harness/ports/mcp-servers.ts";
import { type World, withBooks } from "./fakes/brain.ts";
import { answer } from "./fakes/scripted-parts.ts";

const FIND = { id: "a", name: "mcp__books__find", input: {} };
const DONE: McpCall = {
  outcome: 1,
  content: [],
  structuredContentJson: Buffer.from('{"found":1}'),
  isError: false,
  proxyRequestId: "req_1",
  durationMs: 3n,
};

/** A session whose one call ends when `end` is called; `watched` resolves when its progress is asked for. */
function slow(reports: (signal: AbortSignal) => AsyncIterable<McpProgress>) {
  const world = withBooks(answer("tool_use", FIND), answer("end_turn"));
  const ended = Promise.withResolvers<McpCall>();
  const watched = Promise.withResolvers<AbortSignal>();
  world.mcp.call = () => ended.promise;
  world.mcp.reports = (signal) => {
    watched.resolve(signal);
    return reports(signal);
  };
  return { world, watched: watched.promise, end: () => ended.resolve(DONE) };
}

const resultOf = ({ log }: World) => log.types().filter((type) => type === "agentMcpToolResult").length;
const progressIn = ({ previews }: World) => previews.said.filter((words) => words.startsWith("progress"));

describe("the progress of a call", () => {
  it("is not asked for when the call is over soon [B092]", async () => {
    const world = withBooks(answer("tool_use", FIND), answer("end_turn"));
    await world.drive();
    assert.equal(resultOf(world), 1);
    assert.deepEqual(world.mcp.watched, []);
  });

  it("is shown while the call runs, and asked for no longer [B092]", async () => {
    const { world, watched, end } = slow(async function* (signal) {
      yield { progress: 1, total: 2, message: "half" };
      end();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      yield { progress: 2, total: 2, message: "too late" };
    });
    await world.drive();
    const { aborted } = await watched;
    assert.equal(aborted, true);
    assert.equal(resultOf(world), 1);
    const [key] = world.mcp.watched;
    assert.deepEqual(progressIn(world), [`progress ${key} 1/2 half`]);
  });

  for (const [what, reports] of [
    [
      "that nobody can say",
      () => {
        throw new Error("no such method");
      },
    ],
    [
      "that breaks off",
      async function* () {
        yield { progress: 1, total: 0, message: "" };
        throw new Error("broken");
      },
    ],
    [
      "that never comes",
      () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) }),
    ],
  ] as [string, (signal: AbortSignal) => AsyncIterable<McpProgress>][]) {
    it(`${what} concerns no call [B092]`, async () => {
      const { world, watched, end } = slow(reports);
      void watched.then(() => setImmediate(end));
      assert.equal((await world.drive()).reason, "settled");
      assert.equal(resultOf(world), 1);
      assert.equal(world.mcp.watched.length, 1, "it is not tried again");
    });
  }
});
