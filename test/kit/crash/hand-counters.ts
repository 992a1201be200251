import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { asHandsRoot } from "../as-hands-root.ts";

const COUNTER = join("work", "counter");
const READ_ALL =
  'cd "$0" || exit; for hand in *; do [ -f "$hand/$1" ] && echo $hand $(cat "$hand/$1"); done; true';

/**
 * HandCounters counts what commands did in hands: each appends its own word to the file `counter` of its hand. Files die
 * with their host, so they are collected before it starts again.
 */
export class HandCounters {
  readonly #folder: string;
  readonly #words = new Map<string, string[]>();

  constructor(handsFolder: string) {
    this.#folder = handsFolder;
  }

  /** Reads the counters of all hands that are there. */
  collect(): void {
    for (const [hand, words] of process.getuid?.() === 0 ? readOwn(this.#folder) : readAsRoot(this.#folder))
      this.#words.set(hand, words);
  }

  /** How often a command with this word took effect, in whichever hand. */
  count(word: string): number {
    return [...this.#words.values()].flat().filter((one) => one === word).length;
  }
}

function readOwn(folder: string): [string, string[]][] {
  return readdirSync(folder).flatMap((hand): [string, string[]][] => {
    try {
      return [[hand, wordsOf(readFileSync(join(folder, hand, COUNTER), "utf8"))]];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      // No command has counted there yet, or the hand has just been removed.
      return [];
    }
  });
}

function readAsRoot(folder: string): [string, string[]][] {
  return asHandsRoot(["sh", "-c", READ_ALL, folder, COUNTER])
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [hand = "", ...words] = wordsOf(line);
      return [hand, words];
    });
}

function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}
