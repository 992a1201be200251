import { constants, type FileHandle, open } from "node:fs/promises";
import { ToolError } from "./tool-error.ts";

/**
 * openFile opens an existing regular file for reading. Devices, folders and pipes are refused, and opening a pipe
 * nobody writes to does not block.
 */
export async function openFile(tool: string, canonical: string, shown: string): Promise<FileHandle> {
  let file: FileHandle;
  try {
    file = await open(canonical, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    throw new ToolError(`${tool}: ${shown}: ${explainFileError(error)}`);
  }
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new ToolError(`${tool}: ${shown} is not a regular file`);
}

/** explainFileError says in words what a failed file operation means. */
export function explainFileError(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  const words: Record<string, string> = {
    ENOENT: "no such file or directory",
    EACCES: "permission denied",
    EPERM: "operation not permitted",
    EISDIR: "is a directory",
    ENOTDIR: "a part of the path is not a directory",
    ENOSPC: "no space left",
    EROFS: "read-only file system",
    EFBIG: "file too large",
    ELOOP: "is a symbolic link",
    ENAMETOOLONG: "name too long",
    ENXIO: "is not a regular file",
  };
  return (code && words[code]) ?? code ?? "failed";
}

/** isBinary tells whether bytes look like something other than text. */
export function isBinary(bytes: Uint8Array): boolean {
  return bytes.subarray(0, 8192).includes(0);
}
