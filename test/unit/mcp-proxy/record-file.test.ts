import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as immediate } from "node:timers/promises";
import { type OpenAppendFile, openAppendFile } from "../../../services/mcp-proxy/audit/append-file.ts";
import { createRecordFile } from "../../../services/mcp-proxy/audit/record-file.ts";

const line = (sequence: number) => JSON.stringify({ detail: 'x"sequence":"9"', sequence: String(sequence) });

describe("the audit file outside of the database", () => {
  let folder: string;
  let path: string;
  /** What the database has of this instance. */
  let stored: number[];
  let troubles: unknown[];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-audit-"));
    path = join(folder, "records-mcp-proxy-1.jsonl");
    stored = [];
    troubles = [];
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const open = (more: { openFile?: OpenAppendFile; timeoutMs?: number } = {}) =>
    createRecordFile({
      path,
      ownLines: async (from, limit) =>
        stored
          .filter((sequence) => BigInt(sequence) >= from)
          .slice(0, limit)
          .map(line),
      onTrouble: (error) => troubles.push(error),
      timeoutMs: 20_000,
      ...more,
    });
  const write = (sink: ReturnType<typeof open>, ...sequences: number[]) => {
    stored.push(...sequences);
    return sink.append(sequences.map(line));
  };
  const written = () =>
    readFileSync(path, "utf8")
      .split("\n")
      .slice(0, -1)
      .map((text) => Number(JSON.parse(text).sequence));

  it("has every line once, in the order of writing, and is the owner's alone", async () => {
    const sink = open();
    await Promise.all([write(sink, 1), write(sink, 2), write(sink, 5, 7)]);
    await write(sink, 6);
    assert.deepEqual(written(), [1, 2, 5, 7, 6]);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    await sink.close();
    await assert.rejects(sink.append([line(8)]));
  });

  it("is repaired at the next start: a torn line goes, what the database alone has comes [A143]", async () => {
    stored = [1, 2, 3, 4];
    writeFileSync(path, `${line(1)}\n${line(3)}\n${line(4).slice(0, 20)}`);
    const sink = open();
    await write(sink, 5);
    assert.deepEqual(written().toSorted(), [1, 2, 3, 4, 5]);
    await sink.close();
  });

  it("a file that fails: its records fail, and all of them are there once it works again [A141]", async () => {
    let isFull = true;
    const sink = open({
      openFile: async (...args) => {
        const file = await openAppendFile(...args);
        const append = async (text: string) => {
          if (!isFull) return file.append(text);
          appendFileSync(path, text.slice(0, 10));
          throw Object.assign(new Error("no space"), { code: "ENOSPC" });
        };
        return { ...file, append };
      },
    });
    await assert.rejects(write(sink, 1));
    await assert.rejects(write(sink, 2));
    assert.equal(troubles.length, 1);
    isFull = false;
    await write(sink, 3);
    assert.deepEqual(written(), [1, 2, 3]);
    await sink.close();
  });

  it("a file that hangs counts as failed, what comes meanwhile fails at once, and it recovers by itself [A141]", async function () {
    this.timeout(20_000);
    let stuck: PromiseWithResolvers<void> | undefined;
    let opened = 0;
    let last: Promise<void> | undefined;
    const sink = open({
      timeoutMs: 1000,
      openFile: async (...args) => {
        opened += 1;
        const file = await openAppendFile(...args);
        const append = (text: string) => {
          last = (stuck?.promise ?? Promise.resolve()).then(() => file.append(text));
          return last;
        };
        return { ...file, append };
      },
    });
    await sink.open();
    await write(sink, 1);
    for (const outcome of ["written", "lost"]) {
      stuck = Promise.withResolvers<void>();
      await assert.rejects(write(sink, stored.length + 1), /in time/);
      await assert.rejects(write(sink, stored.length + 1), /does not answer/);
      await assert.rejects(write(sink, stored.length + 1), /does not answer/);
      if (outcome === "written") stuck.resolve();
      else stuck.reject(new Error("gone"));
      stuck = undefined;
      await last?.catch(() => {});
      // Whoever comes once the write that hung is over makes up for it.
      await immediate();
      await write(sink, stored.length + 1);
      assert.deepEqual(
        written().toSorted((a, b) => a - b),
        stored,
      );
    }
    // One that was written late is not opened anew.
    assert.equal(opened, 2);
    assert.equal(troubles.length, 2);
    await sink.close();
  });

  it("a file that was removed does not count as kept, and is made anew with everything", async () => {
    const sink = open();
    await write(sink, 1);
    rmSync(path);
    await assert.rejects(write(sink, 2), /removed/);
    await write(sink, 3);
    assert.deepEqual(written(), [1, 2, 3]);
    await sink.close();
  });

  it("is never written through a link", async () => {
    const target = join(folder, "elsewhere");
    writeFileSync(target, "");
    symlinkSync(target, path);
    await assert.rejects(write(open(), 1), { code: "ELOOP" });
    assert.equal(readFileSync(target, "utf8"), "");
  });
});
