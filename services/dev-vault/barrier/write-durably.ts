import { closeSync, fsyncSync, openSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** writeDurably replaces a file by rename: after it returns the new content survives a power cut, before it the old one does. */
export function writeDurably(path: string, content: Buffer): void {
  const draft = `${path}.tmp`;
  const file = openSync(draft, "w", 0o600);
  try {
    let written = 0;
    while (written < content.length) written += writeSync(file, content, written);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(draft, path);
  syncFolder(dirname(path));
}

/** removeDurably deletes a file so that it stays deleted. */
export function removeDurably(path: string): void {
  unlinkSync(path);
  syncFolder(dirname(path));
}

function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
