import type { Findings } from "./finding.ts";
import type { PublicKeys } from "./public-keys.ts";
import { type Checkpoint, NoteInvalid, openNote, splitNotes } from "./signed-note.ts";

/** A text with the name of the file that it was in. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/**
 * Opens the checkpoints of files and compares them with each other: no two of one size, and within a file, which has
 * them all from where it begins, each names the one before it. Returns those that count, by size.
 */
export function openCheckpoints(
  files: readonly NamedText[],
  keys: PublicKeys,
  findings: Findings,
): Map<bigint, Checkpoint> {
  const bySize = new Map<bigint, Checkpoint>();
  for (const { name, text } of files) {
    let before: Checkpoint | undefined;
    for (const [index, note] of splitNotes(text).entries()) {
      const where = `${name}: checkpoint ${index + 1}`;
      const opened = open(note, where, keys, findings);
      if (!opened) {
        before = undefined;
        continue;
      }
      const other = bySize.get(opened.size);
      if (other && other.digest !== opened.digest) {
        findings.add("fork", `${where}: another checkpoint was signed for size ${opened.size}`);
      }
      if (before && (opened.size <= before.size || opened.prev !== before.digest)) {
        findings.add("fork", `${where}: does not follow the checkpoint of size ${before.size} before it`);
      }
      bySize.set(opened.size, opened);
      before = opened;
    }
  }
  return bySize;
}

function open(note: string, where: string, keys: PublicKeys, findings: Findings): Checkpoint | undefined {
  try {
    return openNote(note, keys);
  } catch (error) {
    if (!(error instanceof NoteInvalid)) throw error;
    findings.add("signature", `${where} ${error.message}`);
    return undefined;
  }
}
