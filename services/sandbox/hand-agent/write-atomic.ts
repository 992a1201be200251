import { constants, mkdir, open, rename, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * writeAtomic replaces a file's content through a temporary file beside it and a rename, so that a reader sees the
 * old content or the new and a crash leaves no torn file (case B083). An existing file keeps its mode.
 */
export async function writeAtomic(canonical: string, content: Buffer): Promise<void> {
  await mkdir(dirname(canonical), { recursive: true });
  const before = await stat(canonical).catch(() => undefined);
  if (before?.isDirectory()) throw Object.assign(new Error("is a directory"), { code: "EISDIR" });
  if (before && !before.isFile()) throw Object.assign(new Error("not a regular file"), { code: "ENXIO" });
  const temporary = `${dirname(canonical)}/.ganglion-${process.pid}-${process.hrtime.bigint().toString(36)}.tmp`;
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const file = await open(temporary, flags, before ? before.mode & 0o777 : 0o644);
  try {
    try {
      await file.writeFile(content);
      if (before) await file.chmod(before.mode & 0o777);
    } finally {
      await file.close();
    }
    await rename(temporary, canonical);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}
