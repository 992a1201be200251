import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadEvaluator } from "../../../services/harness/evaluator/load-evaluator.ts";

describe("the operator's own evaluator", () => {
  const folder = mkdtempSync(join(tmpdir(), "ganglion-evaluator-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  let count = 0;

  function moduleOf(source: string): string {
    count += 1;
    const path = join(folder, `evaluator-${count}.mjs`);
    writeFileSync(path, source);
    return path;
  }

  it("is loaded from a module and keeps its own state", async () => {
    const evaluator = await loadEvaluator(
      moduleOf(
        `export default { name: "house/1", says: "allow", evaluate() { return { decision: this.says }; } };`,
      ),
    );
    assert.equal(evaluator.name, "house/1");
    const signal = new AbortController().signal;
    assert.deepEqual(await evaluator.evaluate({} as never, signal), { decision: "allow" });
  });

  for (const [what, source, problem] of [
    ["a module that throws", `throw new TypeError("secret words");`, /cannot be loaded \(TypeError\)/],
    ["one without a default export", "export const evaluate = () => ({});", /default export/],
    ["one without a name", "export default { evaluate() {} };", /name and version/],
    ["one without a version", `export default { name: "house", evaluate() {} };`, /name and version/],
    ["one without a function", `export default { name: "house/1" };`, /function/],
    ["one that poses as ours", `export default { name: "rules/1", evaluate() {} };`, /built-in/],
  ] as const) {
    it(`refuses ${what}`, async () => {
      await assert.rejects(loadEvaluator(moduleOf(source)), (error: Error) => {
        assert.match(error.message, problem);
        assert.doesNotMatch(error.message, /secret words/);
        return true;
      });
    });
  }

  it("keeps a harness from starting when it cannot be loaded", async () => {
    const harness = spawn(process.execPath, ["services/harness/main.ts"], {
      env: {
        GANGLION_INSTANCE: "harness-1",
        GANGLION_LISTEN: "127.0.0.1:0",
        GANGLION_ADMIN_LISTEN: "127.0.0.1:0",
        GANGLION_TLS_DIR: folder,
        GANGLION_SESSION_ADDR: "127.0.0.1:1",
        GANGLION_SANDBOX_ADDR: "127.0.0.1:1",
        GANGLION_PROXY_ADDR: "127.0.0.1:1",
        GANGLION_PROXY_HTTP_ADDR: "127.0.0.1:1",
        GANGLION_HARNESS_EVALUATOR: join(folder, "absent.mjs"),
      },
    });
    let said = "";
    harness.stderr.on("data", (chunk) => {
      said += String(chunk);
    });
    const [code] = await once(harness, "close");
    assert.equal(code, 78, said);
    assert.match(said, /GANGLION_HARNESS_EVALUATOR cannot be loaded/);
  });
});
