import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { verifyLog } from "../../../services/cli/audit/verify-log.ts";
import { runCli } from "../../kit/mesh.ts";
import { MUTATIONS } from "./mutations.ts";
import { FIRST_CHECKPOINT, type Files, soundLog } from "./sound-log.ts";

const PYTHON = fileURLToPath(new URL("verify_audit.py", import.meta.url));

/** What our verifier says, as `ganglion audit verify --strict` would. */
function verdict({ lines, notes, keys, receipt }: Files): { code: number; text: string } {
  const { findings } = verifyLog({
    logs: [lines],
    keys: { name: "keys.json", text: keys },
    checkpoints: [{ name: "checkpoints.notes", text: notes.map((note) => `${note}\n`).join("") }],
    receipts: receipt === "" ? [] : [{ name: "receipt.json", text: receipt }],
    graceMs: 900_000,
  });
  const text = findings.list.map(({ kind, text: what }) => `${kind}: ${what}`).join("\n");
  return { code: findings.exitCode({ strict: true }), text };
}

/** A sound log without what its first checkpoint covers. */
function anchored(): Files {
  const { files } = soundLog();
  return { ...files, lines: files.lines.slice(FIRST_CHECKPOINT) };
}

/** The example of docs/AUDIT_FORMAT.md. */
function documented(): Files {
  const text = readFileSync(new URL("../../../docs/AUDIT_FORMAT.md", import.meta.url), "utf8");
  const [, lines = "", notes = "", keys = ""] = [
    ...text.slice(text.indexOf("## Example")).matchAll(/```(?:json|text)\n(.*?)```/gs),
  ].map(([, block = ""]) => block);
  return { lines: lines.trimEnd().split("\n"), notes: [notes.slice(0, -1)], keys, receipt: "" };
}

function write(folder: string, { lines, notes, keys, receipt }: Files): string {
  mkdirSync(folder);
  writeFileSync(join(folder, "records.jsonl"), lines.map((line) => `${line}\n`).join(""));
  if (notes.length > 0)
    writeFileSync(join(folder, "checkpoints.notes"), notes.map((note) => `${note}\n`).join(""));
  writeFileSync(join(folder, "keys.json"), keys);
  if (receipt !== "") writeFileSync(join(folder, "receipt.json"), receipt);
  return folder;
}

describe("damaged audit logs", function () {
  this.timeout(120_000);
  const folder = mkdtempSync(join(tmpdir(), "ganglion-audit-"));
  const damaged = MUTATIONS.map((mutation) => {
    const { files, log } = soundLog();
    mutation.apply(files, log);
    return { ...mutation, files };
  });
  let python: number[];

  before(() => {
    const all = [soundLog().files, anchored(), documented(), ...damaged.map(({ files }) => files)];
    const folders = all.map((files, i) => write(join(folder, String(i)), files));
    const { stdout, stderr } = spawnSync("python3", [PYTHON, ...folders], { encoding: "utf8" });
    assert.equal(stderr, "");
    python = stdout.trim().split("\n").map(Number);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it("a sound one is sound for both verifiers", () => {
    assert.deepEqual(verdict(soundLog().files), { code: 0, text: "" });
    assert.equal(python[0], 0);
  });

  it("so is one that begins behind a checkpoint and continues it", () => {
    assert.deepEqual(verdict(anchored()), { code: 0, text: "" });
    assert.equal(python[1], 0);
  });

  it("and so is the example of the format's document", () => {
    assert.deepEqual(verdict(documented()), { code: 0, text: "" });
    assert.equal(python[2], 0);
  });

  it("there are at least thirty kinds of damage, of every exit code", () => {
    assert.ok(MUTATIONS.length >= 30);
    assert.equal(new Set(MUTATIONS.map(({ name }) => name)).size, MUTATIONS.length);
    const codes = new Set(MUTATIONS.map(({ code }) => code));
    assert.deepEqual(
      [...codes].sort((a, b) => a - b),
      [2, 3, 4, 5, 6, 7, 9, 10, 11],
    );
  });

  for (const [i, { name, code, files }] of damaged.entries()) {
    it(`${name}: both verifiers say ${code} [A145]`, () => {
      const ours = verdict(files);
      assert.equal(ours.code, code, ours.text);
      assert.equal(python[i + 3], code, "the second verifier");
    });
  }

  it("the command says the same, names the record, and only warns of what has no anchor [A145]", async () => {
    const { files, log } = soundLog();
    MUTATIONS[0]?.apply(files, log);
    const altered = await runCli(["audit", "verify", "--dir", write(join(folder, "altered"), files)]);
    assert.equal(altered.code, 2);
    assert.match(altered.stdout, /altered: record 5 does not have the hash of its content/);
    const sound = write(join(folder, "sound"), soundLog().files);
    const all = await runCli(["audit", "verify", "--dir", sound, "--receipt", join(sound, "receipt.json")]);
    assert.equal(all.code, 0, all.stdout);
    assert.match(all.stdout, /^sound: records 1 to 24, 3 checkpoints/);
    const log1 = ["--log", join(sound, "records.jsonl")];
    const alone = await runCli(["audit", "verify", ...log1]);
    assert.deepEqual([alone.code, /no_anchor/.test(alone.stdout)], [0, true]);
    assert.equal((await runCli(["audit", "verify", ...log1, "--strict"])).code, 11);
  });

  it("explains a request and who used a credential, from files", async () => {
    const sound = write(join(folder, "asked"), soundLog().files);
    const way = await runCli(["audit", "explain", "req_a2", "--dir", sound]);
    assert.equal(way.code, 0, way.stderr);
    for (const part of [
      "harness-1",
      "sesn_a",
      "vcrd_1",
      "vault-req_a2",
      "203.0.113.7",
      "ok with status 200",
      `TLSv1.3, the server's key sha256:${"5".repeat(64)}`,
    ]) {
      assert.ok(way.stdout.includes(part), `${part}: ${way.stdout}`);
    }
    const used = await runCli(["audit", "who-used", "vcrd_1", "--dir", sound, "--json"]);
    const requests = used.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).request_id);
    assert.deepEqual(requests, ["req_a1", "req_a2", "req_a3", "req_b1", "req_b2"]);
    const late = ["--since", "2026-11-30T10:00:15Z", "--json"];
    const since = await runCli(["audit", "who-used", "vcrd_1", "--dir", sound, ...late]);
    assert.equal(since.stdout.trim().split("\n").length, 1);
    const reached = await runCli(["audit", "explain", "req_h1", "--dir", sound]);
    assert.match(reached.stdout, /of decoy vlt_decoy/);
    assert.match(reached.stdout, /refused: nobody may use a decoy, record 23/);
    const decoy = await runCli(["audit", "who-used", "vcrd_decoy", "--dir", sound, "--json"]);
    assert.equal(JSON.parse(decoy.stdout).request_id, "req_h1");
    assert.equal((await runCli(["audit", "explain", "req_none", "--dir", sound])).code, 66);
    assert.equal((await runCli(["audit", "verify"])).code, 64);
  });
});
