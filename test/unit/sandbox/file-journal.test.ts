import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ExecutionResult } from "../../../services/sandbox/domain/execution-result.ts";
import { FileJournal, type FileJournalOptions } from "../../../services/sandbox/journal/file-journal.ts";

const HOUR_MS = 3_600_000;
const SESSION = "sesn_1";

function result(output: string): ExecutionResult {
  return {
    ...{ outcome: "COMPLETED", output, isError: false, isHandLost: false },
    ...{ exitCode: 0, isTimedOut: false, outputBytes: output.length, durationMs: 1 },
  };
}

describe("sandbox journal: what is remembered", () => {
  let folder: string;
  let now: number;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-journal-"));
    now = 1_000_000_000_000;
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  function open(more: Partial<FileJournalOptions> = {}): Promise<FileJournal> {
    const limits = { retentionMs: 24 * HOUR_MS, compactBytes: 10_000, maxBytes: 1_000_000 };
    return FileJournal.open({ folder, ...limits, now: () => now, ...more });
  }

  function start(journal: FileJournal, key: string): Promise<void> {
    return journal.start({ sessionId: SESSION, key, handId: "hand_1", digest: "d", startedAt: now });
  }

  it("does not grow with the results that the log holds, and never forgets that a call was made [L4]", async () => {
    const sizes: number[] = [];
    for (const acknowledges of [true, false]) {
      const journal = await open({ maxBytes: 100_000_000 });
      for (let i = 0; i < 500; i++) {
        const key = `${acknowledges}-${i}`;
        await start(journal, key);
        await journal.finish(SESSION, key, result("x".repeat(10_000)));
        if (acknowledges) journal.forget(SESSION, [key]);
      }
      await journal.compactIfWorth();
      sizes.push(statSync(join(folder, "journal.log")).size);
      await journal.close();
    }
    assert.ok(sizes[0]! < 500_000, `${sizes[0]} bytes with acknowledgements`);
    assert.ok(sizes[1]! > 5_000_000, `${sizes[1]} bytes without`);
    const again = await open({ maxBytes: 100_000_000 });
    assert.equal(again.find(SESSION, "true-0")?.isFinished, true);
    assert.equal(await again.result(SESSION, "true-0"), undefined);
    assert.equal((await again.result(SESSION, "false-0"))?.output.length, 10_000);
    await again.close();
  });

  it("forgets results of finished calls of that session only", async () => {
    const journal = await open();
    await start(journal, "open");
    await start(journal, "done");
    await journal.finish(SESSION, "done", result("kept"));
    journal.forget(SESSION, ["open", "absent"]);
    journal.forget("sesn_2", ["done"]);
    assert.equal((await journal.result(SESSION, "done"))?.output, "kept");
    await journal.finish(SESSION, "open", result("late"));
    assert.equal((await journal.result(SESSION, "open"))?.output, "late");
    await journal.close();
  });

  it("a started call, a finished one, the epoch and the hands survive", async () => {
    const journal = await open();
    await journal.recordHand({ handId: "hand_1", sessionId: SESSION, createdAt: now });
    await journal.raiseEpoch(SESSION, 7n);
    await journal.raiseEpoch(SESSION, 3n);
    await start(journal, "a");
    await start(journal, "b");
    await journal.finish(SESSION, "b", result("done"));
    await journal.close();
    const again = await open();
    assert.equal(again.seenEpoch(SESSION), 7n);
    assert.equal(again.find(SESSION, "a")!.isFinished, false);
    assert.equal(again.find(SESSION, "b")!.isFinished, true);
    assert.deepEqual(await again.result(SESSION, "b"), result("done"));
    assert.equal(again.find("sesn_2", "b"), undefined);
    assert.deepEqual(again.recordedHands(), [{ handId: "hand_1", sessionId: SESSION, createdAt: now }]);
    await again.close();
  });

  it("the first result stays", async () => {
    const journal = await open();
    await start(journal, "a");
    await journal.finish(SESSION, "a", result("first"));
    await journal.finish(SESSION, "a", result("second"));
    assert.equal((await journal.result(SESSION, "a"))!.output, "first");
    await journal.close();
  });

  it("old results go when the file is rewritten, that the call was made stays known longer", async () => {
    const journal = await open();
    for (let i = 0; i < 20; i += 1) {
      await start(journal, `old${i}`);
      await journal.finish(SESSION, `old${i}`, result("x".repeat(400)));
    }
    await start(journal, "unfinished");
    await journal.raiseEpoch(SESSION, 5n);
    const before = statSync(join(folder, "journal.log")).size;
    now += 25 * HOUR_MS;
    await start(journal, "new");
    await journal.finish(SESSION, "new", result("y".repeat(3_000)));
    assert.ok(statSync(join(folder, "journal.log")).size < before);
    await journal.close();
    const again = await open();
    assert.equal(again.find(SESSION, "old3")!.isFinished, true);
    assert.equal(await again.result(SESSION, "old3"), undefined);
    assert.equal((await again.result(SESSION, "new"))!.output.length, 3_000);
    assert.equal(again.find(SESSION, "unfinished")!.isFinished, false);
    assert.equal(again.seenEpoch(SESSION), 5n);
    await again.close();
  });

  it("writes made while the file is rewritten are in the new one", async () => {
    const journal = await open({ compactBytes: 2_000 });
    const keys = Array.from({ length: 200 }, (_, i) => `k${i}`);
    await Promise.all(
      keys.map(async (key, i) => {
        await start(journal, key);
        now += i % 10 === 0 ? 11 * HOUR_MS : 0;
        await journal.finish(SESSION, key, result(key.repeat(50)));
      }),
    );
    await journal.close();
    const again = await open();
    for (const key of keys) assert.equal(again.find(SESSION, key)?.isFinished, true, key);
    await again.close();
  });

  it("a full journal refuses to start calls", async () => {
    const journal = await open({ maxBytes: 2_000 });
    await start(journal, "a");
    await journal.finish(SESSION, "a", result("z".repeat(3_000)));
    assert.equal(journal.isWritable, false);
    await assert.rejects(start(journal, "b"), /full/);
    assert.equal((await journal.result(SESSION, "a"))!.output.length, 3_000);
    await journal.close();
  });
});
