import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type {
  CheckpointStore,
  StoredCheckpoint,
} from "../../../services/mcp-proxy/audit/checkpoint-store.ts";
import { type Checkpointer, startCheckpointer } from "../../../services/mcp-proxy/audit/checkpointer.ts";
import { createNotesFile } from "../../../services/mcp-proxy/audit/notes-file.ts";
import { canonical, GENESIS, hashOf } from "../../../services/mcp-proxy/domain/audit-chain.ts";
import { isSigned, parseCheckpoint } from "../../../services/mcp-proxy/domain/signed-note.ts";
import { loadCheckpointKeys, openKeyRing } from "../../../services/mcp-proxy/vault/checkpoint-keys.ts";
import type { VaultClient } from "../../../services/mcp-proxy/vault/vault-client.ts";
import { VaultFailure } from "../../../services/mcp-proxy/vault/vault-failure.ts";
import { CreateOnlyVault } from "../../kit/create-only-vault.ts";

const LOG_ID = `log_${"a1".repeat(16)}`;
const DAY_MS = 24 * 3_600_000;

/** The log and its checkpoints in memory, with the database's rules. */
class LogInMemory implements CheckpointStore {
  lines_: string[] = [];
  checkpoints: StoredCheckpoint[] = [];
  /** Runs before a checkpoint is stored, once. */
  beforeAdd: (() => Promise<void>) | undefined;

  write(count: number): bigint {
    for (let n = 0; n < count; n += 1) {
      const before = this.lines_.at(-1);
      const prev = before ? (JSON.parse(before).hash as string) : GENESIS;
      const record = { detail: "", prev, sequence: String(this.lines_.length + 1) };
      this.lines_.push(canonical({ ...record, hash: hashOf(record) }));
    }
    return BigInt(this.lines_.length);
  }

  async head() {
    const last = this.lines_.at(-1);
    const hash = last ? (JSON.parse(last).hash as string) : GENESIS;
    return { sequence: BigInt(this.lines_.length), hash, logId: LOG_ID };
  }
  newest = async () => this.checkpoints.at(-1);
  covering = async (size: bigint) => this.checkpoints.find((each) => each.size >= size);
  list = async (after: bigint, limit: number) =>
    this.checkpoints.filter(({ size }) => size > after).slice(0, limit);
  lines = async (after: bigint, to: bigint, limit: number) =>
    this.lines_.slice(Number(after), Number(to)).slice(0, limit);

  async add(checkpoint: Parameters<CheckpointStore["add"]>[0]): Promise<boolean> {
    const hook = this.beforeAdd;
    this.beforeAdd = undefined;
    await hook?.();
    const newest = this.checkpoints.at(-1);
    if ((newest?.digest ?? GENESIS) !== checkpoint.prev || (newest?.size ?? 0n) >= checkpoint.size)
      return false;
    this.checkpoints.push({ ...checkpoint, createdAt: new Date() });
    return true;
  }
}

describe("keys that sign checkpoints", () => {
  const vaultOf = (vault: CreateOnlyVault) => vault as unknown as VaultClient;
  const load = (vault: CreateOnlyVault, now?: number) =>
    loadCheckpointKeys(vaultOf(vault), {
      mount: "ganglion",
      token: "t",
      logId: LOG_ID,
      ...(now ? { now } : {}),
    });

  it("are made once, whoever comes first, and succeeded after 90 days by one that the old key signed", async () => {
    const vault = new CreateOnlyVault();
    const [one, same] = await Promise.all([load(vault), load(vault)]);
    assert.deepEqual(
      one.map(({ vkey }) => vkey),
      same.map(({ vkey }) => vkey),
    );
    assert.equal(one.length, 1);
    assert.equal((await load(vault, Date.now() + 89 * DAY_MS)).length, 1);
    const renewed = await load(vault, Date.now() + 91 * DAY_MS);
    assert.deepEqual(
      renewed.map(({ signedBy }) => signedBy),
      [undefined, one[0]?.keyId],
    );
    const again = await load(vault, Date.now() + 91 * DAY_MS);
    assert.deepEqual(
      again.map(({ signature }) => signature),
      renewed.map(({ signature }) => signature),
    );
    assert.equal(vault.documents.size, 2);
  });

  it("a document that is no key is an error that does not quote it", async () => {
    const vault = new CreateOnlyVault();
    vault.documents.set("ganglion/data/proxy/checkpoint-key-1", { private_key: "c2VjcmV0", created_at: "x" });
    await assert.rejects(load(vault), (error: Error) => {
      assert.ok(error instanceof VaultFailure && error.cause === undefined);
      return !error.message.includes("c2VjcmV0");
    });
  });
});

describe("checkpoints", () => {
  let folder: string;
  let log: LogInMemory;
  let vault: CreateOnlyVault;
  let refusals: string[];
  let open: Checkpointer[];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-notes-"));
    log = new LogInMemory();
    vault = new CreateOnlyVault();
    refusals = [];
    open = [];
  });
  afterEach(async () => {
    for (const each of open) await each.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const ring = () =>
    openKeyRing(vault as unknown as VaultClient, { mount: "ganglion", token: () => "t", logId: LOG_ID });
  const start = async (name = "1") => {
    const made = startCheckpointer({
      store: log,
      keys: await ring(),
      notes: createNotesFile(join(folder, name)),
      onRefused: (why) => refusals.push(why),
      onTrouble: () => {},
    });
    open.push(made);
    return made;
  };

  it("are made at every 256 records", async () => {
    const signer = await start();
    for (let n = 1; n <= 600; n += 1) signer.written(log.write(1));
    await signer.close();
    assert.deepEqual(
      log.checkpoints.map(({ size }) => size >= 256n),
      log.checkpoints.map(() => true),
    );
    const covered = log.checkpoints.at(-1)?.size ?? 0n;
    assert.ok(covered >= 512n, String(covered));
  });

  it("cover just the record that is asked for, and nothing is made twice", async () => {
    const signer = await start();
    log.write(5);
    assert.equal((await signer.cover(3n)).size, 3n);
    assert.equal((await signer.cover(2n)).size, 3n);
    assert.equal((await signer.make())?.size, 5n);
    assert.equal((await signer.make())?.size, 5n);
    assert.equal(log.checkpoints.length, 2);
    assert.equal(log.checkpoints[1]?.prev, log.checkpoints[0]?.digest);
  });

  it("two replicas that sign at the same moment make one chain", async () => {
    const [a, b] = [await start("a"), await start("b")];
    log.write(4);
    log.beforeAdd = async () => void (await b.cover(2n));
    assert.equal((await a.make())?.size, 4n);
    assert.deepEqual(
      log.checkpoints.map(({ size }) => size),
      [2n, 4n],
    );
    const keys = (await ring()).publicKeys();
    assert.ok(log.checkpoints.every(({ note }) => isSigned(note, keys)));
    // Each file has all of them, whoever made them.
    await b.make();
    assert.equal(readFileSync(join(folder, "a"), "utf8"), readFileSync(join(folder, "b"), "utf8"));
  });

  it("are refused over a record that was altered, removed or inserted [A145]", async () => {
    const signer = await start();
    log.write(3);
    await signer.make();
    log.write(3);
    const whole = [...log.lines_];
    const [, , , fourth = "", fifth = ""] = whole;
    const wrongs: [string[], string][] = [
      [
        [...whole.slice(0, 4), fifth.replace('"detail":""', '"detail":"x"'), ...whole.slice(5)],
        "record 5 was altered",
      ],
      [whole.toSpliced(4, 1), "record 5 is missing or out of order"],
      [whole.toSpliced(4, 0, fourth), "record 5 is missing or out of order"],
    ];
    for (const [lines, why] of wrongs) {
      log.lines_ = lines;
      await assert.rejects(signer.make(), { reason: "CHECKPOINT_REFUSED" });
      assert.equal(refusals.at(-1), why);
      log.lines_ = whole;
    }
    assert.equal((await signer.make())?.size, 6n);
  });

  it("are refused over a checkpoint that nobody of us signed", async () => {
    const signer = await start();
    log.write(3);
    const other = new CreateOnlyVault();
    const theirs = await openKeyRing(other as unknown as VaultClient, {
      mount: "ganglion",
      token: () => "t",
      logId: LOG_ID,
    });
    const forger = startCheckpointer({
      store: log,
      keys: theirs,
      notes: undefined,
      onRefused: () => {},
      onTrouble: () => {},
    });
    open.push(forger);
    await forger.make();
    log.write(1);
    await assert.rejects(signer.make(), { reason: "CHECKPOINT_REFUSED" });
    assert.match(refusals[0] ?? "", /nobody of us signed/);
  });

  it("a torn note at the end of the file is written anew", async () => {
    const signer = await start();
    log.write(2);
    await signer.make();
    log.write(2);
    await signer.make();
    await signer.close();
    const path = join(folder, "1");
    const whole = readFileSync(path, "utf8");
    truncateSync(path, Buffer.byteLength(whole) - 30);
    const successor = await start();
    await successor.make();
    assert.equal(readFileSync(path, "utf8"), whole);
    assert.deepEqual(
      [...whole.matchAll(/ganglion\/[^\n]+\n(?:[^\n]+\n)+\n(?:[^\n]+\n)+/g)].map(
        ([note]) => parseCheckpoint(note)?.size,
      ),
      [2n, 4n],
    );
  });
});
