import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

// Files of a hand may belong to a subordinate id: an ordinary user becomes its root to read them.
const READ_ALL =
  'for f in "$0"/*/work/counter; do [ -f "$f" ] && echo "$(basename "$(dirname "$(dirname "$f")")") $(tr "\\n" " " < "$f")"; done; true';

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
      return [[hand, wordsOf(readFileSync(join(folder, hand, "work", "counter"), "utf8"))]];
    } catch {
      // No command has counted there yet, or the hand has just been removed.
      return [];
    }
  });
}

function readAsRoot(folder: string): [string, string[]][] {
  const command = ["--user", "--map-root-user", "--map-auto", "--", "sh", "-c", READ_ALL, folder];
  const text = execFileSync("unshare", command, { encoding: "utf8" });
  return wordsByLine(text);
}

function wordsByLine(text: string): [string, string[]][] {
  return text
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
