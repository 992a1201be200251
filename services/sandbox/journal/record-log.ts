import { constants, type FileHandle, open } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { crashPoint } from "../../common/crash/crash-point.ts";

const MAGIC = 0x474a4c31;
const HEADER_BYTES = 20;
const MAX_RECORD_BYTES = 64 * 1024 * 1024;

/** Where a record's payload is in the file. */
export type RecordPlace = { offset: number; length: number };

/** A record found when the log was opened. */
export type StoredRecord = RecordPlace & { payload: Buffer };

/** JournalDamagedError says that records which had been synced cannot be read any more. */
export class JournalDamagedError extends Error {
  override name = "JournalDamagedError";
}

type Waiting = { payload: Buffer; resolve: (place: RecordPlace) => void; reject: (error: Error) => void };
type Frame = { batch: number; index: number; count: number; payload: Buffer; end: number };

/**
 * RecordLog is an append-only file of checksummed records. Appends that are made while one is being synced share the
 * next sync. A record is durable when its promise resolves.
 */
export class RecordLog {
  readonly #file: FileHandle;
  #size: number;
  #batch: number;
  #waiting: Waiting[] = [];
  #isWriting = false;
  #failure: Error | undefined;
  #idle: Promise<void> = Promise.resolve();

  private constructor(file: FileHandle, size: number, batch: number) {
    this.#file = file;
    this.#size = size;
    this.#batch = batch;
  }

  /**
   * open reads all records and cuts off a tail that was never synced. Damage before the last sync is an error:
   * dropping what lies behind it could run a command twice.
   */
  static async open(path: string, onRecord: (record: StoredRecord) => void): Promise<RecordLog> {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
    const file = await open(path, flags, 0o600);
    try {
      const bytes = await file.readFile();
      let last: Frame | undefined;
      let offset = 0;
      for (let frame = readFrame(bytes, offset); frame; frame = readFrame(bytes, offset)) {
        onRecord({
          offset: offset + HEADER_BYTES,
          length: frame.payload.length,
          // A copy, so that the file's bytes do not stay in memory.
          payload: Buffer.from(frame.payload),
        });
        last = frame;
        offset = frame.end;
      }
      if (offset < bytes.length) await cutTail(file, bytes, offset, last);
      return new RecordLog(file, offset, last ? last.batch + 1 : 1);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Bytes in the file. */
  get size(): number {
    return this.#size;
  }

  /** False when writing failed in a way that cannot be taken back. */
  get isWritable(): boolean {
    return this.#failure === undefined;
  }

  /** append resolves when the record is on disk; it rejects when it certainly is not kept. */
  append(payload: Buffer): Promise<RecordPlace> {
    if (this.#failure) return Promise.reject(this.#failure);
    const done = new Promise<RecordPlace>((resolve, reject) =>
      this.#waiting.push({ payload, resolve, reject }),
    );
    if (!this.#isWriting) this.#idle = this.#writeAll();
    return done;
  }

  /** read returns a record's payload. */
  async read(place: RecordPlace): Promise<Buffer> {
    const bytes = Buffer.alloc(place.length);
    const { bytesRead } = await this.#file.read(bytes, 0, place.length, place.offset);
    if (bytesRead !== place.length) throw new JournalDamagedError("a record is shorter than it was");
    return bytes;
  }

  /** close waits for what is being written. */
  async close(): Promise<void> {
    await this.#idle;
    this.#failure ??= new Error("the journal is closed");
    await this.#file.close();
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0 && !this.#failure) {
      const batch = this.#waiting.splice(0, 1_000);
      await this.#writeBatch(batch);
    }
    this.#isWriting = false;
    for (const waiting of this.#waiting.splice(0)) waiting.reject(this.#failure!);
  }

  async #writeBatch(batch: Waiting[]): Promise<void> {
    const frames = batch.map(({ payload }, index) => encodeFrame(payload, this.#batch, index, batch.length));
    try {
      crashPoint("journal.write.before");
      await writeFully(this.#file, Buffer.concat(frames), this.#size);
      crashPoint("journal.write.after");
      await this.#file.datasync();
      crashPoint("journal.sync.after");
    } catch (error) {
      await this.#takeBack(error as Error);
      for (const waiting of batch) waiting.reject(error as Error);
      return;
    }
    this.#batch += 1;
    for (const [index, waiting] of batch.entries()) {
      waiting.resolve({ offset: this.#size + HEADER_BYTES, length: waiting.payload.length });
      this.#size += frames[index]!.length;
    }
  }

  /** A full disk passes; when even taking back fails, nothing can be promised any more. */
  async #takeBack(cause: Error): Promise<void> {
    try {
      await this.#file.truncate(this.#size);
      await this.#file.datasync();
    } catch {
      this.#failure = new Error("the journal cannot be written", { cause });
    }
  }
}

async function writeFully(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** Header: magic, payload length, checksum of all that follows, batch, index in the batch, size of the batch. */
function encodeFrame(payload: Buffer, batch: number, index: number, count: number): Buffer {
  if (payload.length > MAX_RECORD_BYTES) throw new RangeError("record is too large");
  const frame = Buffer.alloc(HEADER_BYTES + payload.length);
  frame.writeUInt32BE(MAGIC, 0);
  frame.writeUInt32BE(payload.length, 4);
  frame.writeUInt32BE(batch >>> 0, 12);
  frame.writeUInt16BE(index, 16);
  frame.writeUInt16BE(count, 18);
  payload.copy(frame, HEADER_BYTES);
  frame.writeUInt32BE(crc32(frame.subarray(12)), 8);
  return frame;
}

function readFrame(bytes: Buffer, offset: number): Frame | undefined {
  if (offset + HEADER_BYTES > bytes.length || bytes.readUInt32BE(offset) !== MAGIC) return undefined;
  const length = bytes.readUInt32BE(offset + 4);
  const end = offset + HEADER_BYTES + length;
  if (length > MAX_RECORD_BYTES || end > bytes.length) return undefined;
  if (crc32(bytes.subarray(offset + 12, end)) !== bytes.readUInt32BE(offset + 8)) return undefined;
  return {
    batch: bytes.readUInt32BE(offset + 12),
    index: bytes.readUInt16BE(offset + 16),
    count: bytes.readUInt16BE(offset + 18),
    payload: bytes.subarray(offset + HEADER_BYTES, end),
    end,
  };
}

/** A batch is begun only when the one before was synced; so a readable frame of a later batch proves damage. */
async function cutTail(
  file: FileHandle,
  bytes: Buffer,
  offset: number,
  last: Frame | undefined,
): Promise<void> {
  const isLastComplete = !last || last.index + 1 === last.count;
  const torn = last ? (isLastComplete ? last.batch + 1 : last.batch) : 1;
  const magic = Buffer.alloc(4);
  magic.writeUInt32BE(MAGIC);
  for (let at = bytes.indexOf(magic, offset + 1); at >= 0; at = bytes.indexOf(magic, at + 1)) {
    const frame = readFrame(bytes, at);
    if (frame && frame.batch > torn)
      throw new JournalDamagedError(`the journal is damaged at byte ${offset}`);
  }
  await file.truncate(offset);
  await file.sync();
}
