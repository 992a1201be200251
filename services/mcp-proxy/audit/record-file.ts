import { type AppendFile, type OpenAppendFile, openAppendFile } from "./append-file.ts";

/** The second place of the audit log, outside of the database. */
export interface RecordSink {
  /** Makes the file ready, with whatever it lacks; may take longer than a call would wait. */
  open(): Promise<void>;
  /** Resolves when the lines are durable; rejects when they are not within 2 s. */
  append(lines: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** Where the file is, and where to get what it lacks. */
export interface RecordFileOptions {
  path: string;
  /** Lines of this instance's records from a sequence on, in order, at most `limit`. */
  ownLines: (from: bigint, limit: number) => Promise<string[]>;
  /** Something that went wrong, once for each time that it begins. */
  onTrouble: (error: unknown) => void;
  openFile?: OpenAppendFile;
  timeoutMs?: number;
}

interface Waiting {
  lines: readonly string[];
  patienceMs: number;
  settle: () => void;
  fail: (error: unknown) => void;
}

const TIMEOUT_MS = 2000;
const OPEN_TIMEOUT_MS = 20_000;
/** Lines kept for a file that hangs; more than these come from the database again. */
const MAX_MISSED = 10_000;
const PAGE = 1000;

/**
 * Appends records as JSON Lines. What waits together is written and synchronised together. After any failure the file is
 * opened anew: a torn end is cut off, and what the database has of this instance and the file has not is written first.
 * So the file lacks nothing for longer than it fails, and nothing that a crash took. A write that hangs fails its records
 * after 2 s, and everything after it at once, until it is over (case A141); what failed meanwhile goes with the next one.
 */
export function createRecordFile(options: RecordFileOptions): RecordSink {
  const { path, ownLines, onTrouble, openFile = openAppendFile, timeoutMs = TIMEOUT_MS } = options;
  let file: AppendFile | undefined;
  let isHanging = false;
  let isWriting = false;
  let isWell = true;
  let isClosed = false;
  let waiting: Waiting[] = [];
  // What a repair found in the database before those who wrote it came here with it.
  let ahead = new Set<string>();
  let aheadUntil = 0;
  // What failed at once while a write hung.
  let missed: string[] = [];

  /** Opens the file and answers the sequences at its end, those included that it lacked. */
  const repair = async (): Promise<Set<string>> => {
    const opened = await openFile(path, (tail) => tail.lastIndexOf("\n") + 1);
    try {
      // The first line of a tail may be half a line.
      const lines = opened.tail.split("\n").slice(opened.isWhole ? 0 : 1, -1);
      const known = new Set(lines.map(sequenceOf));
      let from = lines.length > 0 ? lowest(known) : 0n;
      for (;;) {
        const page = await ownLines(from, PAGE);
        const missing = page.filter((line) => !known.has(sequenceOf(line)));
        if (missing.length > 0) await opened.append(text(missing));
        for (const line of missing) known.add(sequenceOf(line));
        const last = page.at(-1);
        if (last === undefined || page.length < PAGE) break;
        from = BigInt(sequenceOf(last)) + 1n;
      }
      file = opened;
      return known;
    } catch (error) {
      await opened.close().catch(() => {});
      throw error;
    }
  };

  const write = async (lines: readonly string[]) => {
    if (!file) {
      missed = [];
      ahead = await repair();
      aheadUntil = Date.now() + 2 * timeoutMs;
    }
    const missing = [...missed, ...lines].filter((line) => !ahead.has(sequenceOf(line)));
    missed = [];
    if (Date.now() > aheadUntil) ahead.clear();
    if (missing.length > 0) await file?.append(text(missing));
  };

  /** A write that hangs keeps a thread: there is never a second one beside it. */
  const inTime = async (work: Promise<void>, patienceMs: number) => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isHanging = true;
        reject(new Error("the audit file did not answer in time"));
      }, patienceMs);
    });
    const over = (isWritten: boolean) => {
      // Who failed in time is dropped by the one who waited.
      if (isHanging && (!isWritten || missed.length > MAX_MISSED)) drop();
      isHanging = false;
    };
    work.then(
      () => over(true),
      () => over(false),
    );
    try {
      await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  };

  const drop = () => {
    const before = file;
    file = undefined;
    before?.close().catch(() => {});
  };

  const flush = async () => {
    if (isWriting) return;
    isWriting = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      const lines = batch.flatMap((each) => each.lines);
      const wasHanging = isHanging;
      try {
        if (wasHanging) throw new Error("the audit file does not answer");
        await inTime(write(lines), Math.max(...batch.map(({ patienceMs }) => patienceMs)));
        isWell = true;
        for (const { settle } of batch) settle();
      } catch (error) {
        if (isWell) onTrouble(error);
        isWell = false;
        if (wasHanging && missed.length <= MAX_MISSED) missed.push(...lines);
        else if (!isHanging) drop();
        for (const { fail } of batch) fail(error);
      }
    }
    isWriting = false;
  };

  const enter = (lines: readonly string[], patienceMs: number) =>
    new Promise<void>((settle, fail) => {
      if (isClosed) return fail(new Error("the audit file is closed"));
      waiting.push({ lines, patienceMs, settle, fail });
      void flush();
    });

  return {
    open: () => enter([], Math.max(timeoutMs, OPEN_TIMEOUT_MS)),
    append: (lines) => enter(lines, timeoutMs),
    close: async () => {
      isClosed = true;
      if (!isHanging) await file?.close().catch(() => {});
    },
  };
}

function text(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

function sequenceOf(line: string): string {
  // Inside of a text its quotes would be escaped.
  return /"sequence":"(\d+)"/.exec(line)?.[1] ?? "";
}

function lowest(sequences: Set<string>): bigint {
  const numbers = [...sequences].map((sequence) => BigInt(sequence || 0));
  return numbers.sort((a, b) => (a < b ? -1 : 1))[0] ?? 0n;
}
