import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NeedleIndex } from "../kit/secret-scan/needles.ts";
import { scanFiles } from "../kit/secret-scan/scan-files.ts";
import { scanProcess } from "../kit/secret-scan/scan-process.ts";

const secret = randomBytes(32).toString("base64url");
const index = new NeedleIndex([{ name: "canary", secret }]);

/** A process that holds the secret as `program` says; it is told by descriptor, like a service. */
async function holder(program: string, args: string[] = [], env = {}): Promise<ChildProcess> {
  const script = `const s = require('node:fs').readFileSync(0, 'utf8'); ${program}; console.log('ready'); setInterval(() => {}, 1e6)`;
  const child = spawn(process.execPath, ["-e", script, ...args], { stdio: ["pipe", "pipe", "inherit"], env });
  child.stdin?.end(secret);
  await once(child.stdout as NodeJS.ReadableStream, "data");
  return child;
}

describe("the secret scan", () => {
  const children: ChildProcess[] = [];
  const folder = mkdtempSync(join(tmpdir(), "ganglion-scan-"));
  const surfaces = async (started: Promise<ChildProcess>): Promise<Set<string>> => {
    const child = await started;
    children.push(child);
    return new Set(scanProcess(child.pid as number, index).findings.map((finding) => finding.surface));
  };

  after(() => {
    for (const child of children) child.kill("SIGKILL");
    rmSync(folder, { recursive: true });
  });

  for (const [form, text] of [
    ["raw", secret],
    ["utf-16", Buffer.from(secret, "utf16le").toString("latin1")],
    ["hex", Buffer.from(secret).toString("hex")],
    ["base64", Buffer.from(`Basic:${secret}`).toString("base64")],
    ["base64 one further", Buffer.from(`:${secret}`).toString("base64")],
    ["base64url two further", Buffer.from(`x:${secret}`).toString("base64url")],
    ["a part", secret.slice(9, 26)],
  ] as const) {
    it(`finds the secret as ${form} at any alignment`, () => {
      for (let shift = 0; shift < 8; shift++) {
        assert.ok(
          index.find(Buffer.concat([Buffer.alloc(shift, "x"), Buffer.from(text, "latin1")])),
          `shift ${shift}`,
        );
      }
    });
  }

  it("finds nothing in noise", () => {
    assert.deepEqual(index.find(randomBytes(8 << 20)), []);
  });

  it("finds a flat string in the memory of a process", async () => {
    assert.ok((await surfaces(holder("globalThis.kept = s"))).has("memory"));
  });

  it("finds a string put together from pieces", async () => {
    assert.ok((await surfaces(holder("globalThis.kept = 'Bearer ' + s"))).has("memory"));
  });

  it("finds a deleted file that is still open", async () => {
    const path = join(folder, "deleted");
    const program = `const fs = require('node:fs'); const p = ${JSON.stringify(path)}; fs.writeFileSync(p, s); globalThis.fd = fs.openSync(p, 'r'); fs.unlinkSync(p)`;
    assert.ok((await surfaces(holder(program))).has("open file"));
  });

  it("finds the secret in environment and arguments", async () => {
    assert.ok((await surfaces(holder("", [secret]))).has("arguments"));
    assert.ok((await surfaces(holder("", [], { PLANTED: secret }))).has("environment"));
  });

  it("finds nothing in a process that never had the secret", async () => {
    const child = spawn(process.execPath, ["-e", "console.log('ready'); setInterval(() => {}, 1e6)"], {
      env: {},
    });
    children.push(child);
    await once(child.stdout, "data");
    const scan = scanProcess(child.pid as number, index);
    assert.deepEqual(scan.findings, []);
    assert.deepEqual(scan.unreadable, []);
    assert.ok(scan.memoryBytes > 1 << 20);
  });

  it("finds the secret in files", () => {
    writeFileSync(join(folder, "log"), `token=${secret}\n`);
    assert.deepEqual(
      scanFiles(folder, index).findings.map((finding) => finding.surface),
      ["file"],
    );
  });
});
