import { constants, type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";

/** A file that only ever grows, whatever of it a dead process left. */
export interface AppendFile {
  /** The last part of the file that is whole. */
  readonly tail: string;
  /** True when `tail` is the whole file. */
  readonly isWhole: boolean;
  /** Appends text; it is on the disk when this resolves. */
  append(text: string): Promise<void>;
  close(): Promise<void>;
}

/** Makes or opens such a file. */
export type OpenAppendFile = (path: string, wholeLength: (tail: string) => number) => Promise<AppendFile>;

/** More than any record or checkpoint, and what was written in the last seconds before a crash. */
const TAIL_BYTES = 1 << 20;
// A write returns when its data is on the disk (that saves a way to the thread pool), and never goes through a link that
// somebody put there.
const FLAGS =
  constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_DSYNC | constants.O_NOFOLLOW;

/**
 * Opens a file for appending (mode 0600) and makes it when there is none. `wholeLength` says how much of the tail is whole:
 * what follows was being written when a process died, and is cut off.
 */
export const openAppendFile: OpenAppendFile = async (path, wholeLength) => {
  const handle = await open(path, FLAGS, 0o600);
  try {
    const { size } = await handle.stat();
    const start = Math.max(0, size - TAIL_BYTES);
    const bytes = Buffer.alloc(size - start);
    await handle.read(bytes, 0, bytes.length, start);
    // Every byte is one character here, so lengths in characters are lengths in bytes.
    const kept = wholeLength(bytes.toString("latin1"));
    if (start > 0 && kept === 0) throw new Error("the end of an audit file cannot be read");
    if (kept < bytes.length) await handle.truncate(start + kept);
    if (size === 0) await syncFolder(dirname(path));
    return {
      tail: bytes.subarray(0, kept).toString("utf8"),
      isWhole: start === 0,
      append: (text) => append(handle, text),
      close: () => handle.close(),
    };
  } catch (error) {
    await handle.close().catch(() => {});
    throw error;
  }
};

async function append(handle: FileHandle, text: string): Promise<void> {
  const [{ nlink }] = await Promise.all([handle.stat(), handle.appendFile(text)]);
  // Bytes in a file that nobody can find any more are as good as lost.
  if (nlink === 0) throw new Error("an audit file was removed");
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
