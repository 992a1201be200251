import { mkdirSync, rmSync, writeFileSync } from "node:fs";

const KEPT = 20;

/** OutputFiles keeps the raw bytes of the last long outputs in a folder of the hand, where its tools can read them. */
export class OutputFiles {
  readonly #folder: string;
  #count = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** keep writes an output and returns its path; undefined when there is no room for it. */
  keep(raw: Buffer): string | undefined {
    this.#count += 1;
    const path = `${this.#folder}/output-${this.#count}`;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      rmSync(`${this.#folder}/output-${this.#count - KEPT}`, { force: true });
      writeFileSync(path, raw, { mode: 0o600 });
      return path;
    } catch {
      return undefined;
    }
  }
}
