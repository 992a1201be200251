import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JournalDamagedError, RecordLog } from "../../../services/sandbox/journal/record-log.ts";

describe("sandbox journal: the record log", () => {
  let folder: string;
  let path: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "ganglion-log-"));
    path = join(folder, "log");
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  async function readAll(): Promise<string[]> {
    const found: string[] = [];
    const log = await RecordLog.open(path, ({ payload }) => found.push(payload.toString()));
    await log.close();
    return found;
  }

  async function write(...payloads: string[]): Promise<void> {
    const log = await RecordLog.open(path, () => undefined);
    // One after another: a batch each.
    for (const payload of payloads) await log.append(Buffer.from(payload));
    await log.close();
  }

  it("gives back what was appended, in order, and reads it by place", async () => {
    const log = await RecordLog.open(path, () => undefined);
    const texts = Array.from({ length: 500 }, (_, i) => `record ${i}`);
    const places = await Promise.all(texts.map((text) => log.append(Buffer.from(text))));
    assert.equal((await log.read(places[123]!)).toString(), "record 123");
    await log.close();
    await assert.rejects(log.append(Buffer.from("late")), /closed/);
    assert.deepEqual(await readAll(), texts);
  });

  it("a tail that was torn at any byte is cut off and what was synced stays", async () => {
    await write("one", "two");
    const whole = readFileSync(path);
    const first = 20 + 3;
    for (let cut = first + 1; cut < whole.length; cut += 1) {
      writeFileSync(path, whole);
      truncateSync(path, cut);
      assert.deepEqual(await readAll(), ["one"], `cut at ${cut}`);
      assert.equal(statSync(path).size, first);
    }
    writeFileSync(path, Buffer.concat([whole, Buffer.alloc(100)]));
    assert.deepEqual(await readAll(), ["one", "two"]);
    appendFileSync(path, "garbage");
    await write("three");
    assert.deepEqual(await readAll(), ["one", "two", "three"]);
  });

  it("damage before the last sync is an error, not a silent loss", async () => {
    await write("one", "two", "three");
    const whole = readFileSync(path);
    for (const at of [0, 5, 9, 13, 21, 24, 30]) {
      const damaged = Buffer.from(whole);
      damaged[at]! ^= 0xff;
      writeFileSync(path, damaged);
      await assert.rejects(readAll(), JournalDamagedError, `byte ${at}`);
    }
  });
});
