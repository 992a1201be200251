import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { decide } from "../../../services/harness/domain/decide.ts";
import { fold } from "../../../services/harness/domain/fold.ts";
import { foldAhead } from "../../../services/harness/domain/fold-ahead.ts";
import { projectRequest } from "../../../services/harness/domain/project-request.ts";
import { emptyState, type SessionState } from "../../../services/harness/domain/session-state.ts";
import { goldenLogs, loadLog } from "../../golden/load-log.ts";
import { describeState } from "./describe-state.ts";

const GOLDEN = new URL("../../golden/", import.meta.url);

describe("golden logs", () => {
  it("seen ahead over each result are what they will be, and the state that is looked from stays as it is", () => {
    let closed = 0;
    for (const log of goldenLogs().map(loadLog)) {
      log.forEach(({ id, body }, at) => {
        if (body?.$case !== "agentToolResult" && body?.$case !== "agentMcpToolResult") return;
        const before = log.slice(0, at).reduce(fold, emptyState());
        const state = log.slice(0, at).reduce(fold, emptyState());
        const ahead = foldAhead(state, [{ id, body }]);
        assert.deepEqual(state, before);
        assert.deepEqual(ahead, log.slice(0, at + 1).reduce(fold, emptyState()));
        closed += state.openCalls.size - ahead.openCalls.size;
      });
    }
    assert.ok(closed >= 5, `only ${closed} results closed a call`);
  });

  for (const name of goldenLogs()) {
    it(`folds ${name} to the state written down`, () => {
      const state = foldLog(name);
      compare(
        `states/${name}.json`,
        `${JSON.stringify({ state: describeState(state), next: decide(state) }, write, 2)}\n`,
      );
    });

    it(`projects ${name} to the bytes written down, every time the same [B008] [B010] [B011] [B013] [B014]`, () => {
      const first = project(foldLog(name));
      assert.deepEqual(project(foldLog(name)), first);
      compare(`requests/${name}.json`, first?.toString("utf8"));
    });
  }
});

function foldLog(name: string): SessionState {
  return loadLog(name).reduce(fold, emptyState());
}

function project(state: SessionState): Buffer | undefined {
  return state.openCalls.size > 0 ? undefined : projectRequest(state);
}

function compare(file: string, actual: string | undefined): void {
  const url = new URL(file, GOLDEN);
  if (process.env.UPDATE_GOLDEN === "1") {
    if (actual === undefined) rmSync(url, { force: true });
    else writeFileSync(url, actual);
    return;
  }
  assert.equal(actual, existsSync(url) ? readFileSync(url, "utf8") : undefined);
}

function write(key: string, value: unknown): unknown {
  if (key === "stopDetailsJson") return undefined;
  if (key === "calls" && Array.isArray(value)) return value.map((call: { id: string }) => call.id ?? call);
  // Documents as the text they are.
  if ((key === "value" || key === "inputJson") && isBuffer(value))
    return Buffer.from(value.data).toString("utf8");
  return typeof value === "bigint" ? String(value) : value;
}

function isBuffer(value: unknown): value is { type: "Buffer"; data: number[] } {
  return (value as { type?: unknown } | null)?.type === "Buffer";
}
