import { type Checkpoint, parseCheckpoint } from "../domain/signed-note.ts";
import { type AppendFile, type OpenAppendFile, openAppendFile } from "./append-file.ts";

/** Checkpoints outside of the database: notes one after another, each followed by an empty line. */
export interface NotesFile {
  /** Opens the file and answers the last checkpoint in it. */
  last(): Promise<Checkpoint | undefined>;
  /** Appends checkpoints; they are durable when this resolves. After a failure the file is opened anew. */
  append(checkpoints: readonly Checkpoint[]): Promise<void>;
  close(): Promise<void>;
}

/** A text of at least three lines, an empty line, signatures, an empty line; read byte by byte. */
const WHOLE = /ganglion\/[^\n]+\n(?:[^\n]+\n)+\n(?:[^\n]+\n)+\n/g;

/** Makes the file of checkpoints of one instance. */
export function createNotesFile(path: string, openFile: OpenAppendFile = openAppendFile): NotesFile {
  let file: AppendFile | undefined;
  let newest: Checkpoint | undefined;
  const opened = async () => {
    if (file) return file;
    file = await openFile(path, (tail) => {
      const last = [...tail.matchAll(WHOLE)].at(-1);
      return last ? last.index + last[0].length : 0;
    });
    const [note] = [...file.tail.matchAll(WHOLE)].at(-1) ?? [];
    newest = note === undefined ? undefined : parseCheckpoint(note.slice(0, -1));
    return file;
  };
  return {
    last: async () => {
      await opened();
      return newest;
    },
    append: async (checkpoints) => {
      const target = await opened();
      const more = checkpoints.filter(({ size }) => size > (newest?.size ?? 0n));
      if (more.length === 0) return;
      try {
        await target.append(more.map(({ note }) => `${note}\n`).join(""));
        newest = more.at(-1);
      } catch (error) {
        file = undefined;
        await target.close().catch(() => {});
        throw error;
      }
    },
    close: async () => {
      await file?.close().catch(() => {});
      file = undefined;
    },
  };
}
