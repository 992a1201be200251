import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const LIMIT_MS = 480_000;

describe("the demo", function () {
  this.timeout(LIMIT_MS + 10_000);

  it("ends with 0, and everything it claims holds", async () => {
    const child = spawn(process.execPath, ["test/demo/main.ts"], {
      cwd: ROOT,
      env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "" },
      stdio: ["ignore", "pipe", "pipe"],
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    const exit = new Promise<number | null>((resolve, reject) => {
      child.once("close", resolve);
      child.once("error", reject);
    });
    const [code, stdout, stderr] = await Promise.all([exit, text(child.stdout), text(child.stderr)]);
    assert.equal(code, 0, `${stdout}\n${stderr}`);
    const lines = stdout.trimEnd().split("\n");
    assert.equal(lines.at(-1), "All of it holds.");
    assert.ok(!stdout.includes("✘"), stdout);
    assert.match(stdout, /scripted/, "it says that the model is scripted");
    assert.match(stdout, /kill -9 \d+: harness-\d, the brain/);
    assert.match(stdout, /kill -9 \d+: hand_\w+, the hand/);
    assert.match(stdout, /events \d+ · brains 2 · hands \d/);
    assert.match(stdout, /first token after \d+ ms/);
    const scanned = [
      "mcp-proxy-1",
      "session-1",
      "gateway-1",
      "sandbox-1",
      "harness-1",
      "postgres",
      "vault",
      "supervisor",
    ];
    for (const part of scanned) assert.match(stdout, new RegExp(`✔ ${part} .*control found`), part);
  });
});
