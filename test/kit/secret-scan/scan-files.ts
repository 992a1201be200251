import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { NeedleIndex } from "./needles.ts";
import type { Finding } from "./scan-process.ts";

/** What a folder was searched for, and how much of it. */
export interface FileScan {
  readonly findings: Finding[];
  readonly files: number;
  readonly bytes: number;
  /** What this user may not read. */
  readonly unreadable: string[];
}

/** Searches every regular file below a folder, names included. Follows no link. */
export function scanFiles(folder: string, index: NeedleIndex): FileScan {
  const findings: Finding[] = [];
  let files = 0;
  let bytes = 0;
  const unreadable: string[] = [];
  const visit = (path: string): void => {
    try {
      search(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
      unreadable.push(path);
    }
  };
  const search = (path: string): void => {
    for (const { piece } of index.find(Buffer.from(path)))
      findings.push({ ...piece, surface: "file name", place: path });
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory()) for (const name of readdirSync(path)) visit(join(path, name));
    if (!stat?.isFile()) return;
    const content = readFileSync(path);
    files++;
    bytes += content.length;
    for (const { piece } of index.find(content)) findings.push({ ...piece, surface: "file", place: path });
  };
  visit(folder);
  return { findings, files, bytes, unreadable };
}
