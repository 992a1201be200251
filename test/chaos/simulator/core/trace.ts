import { createHash } from "node:crypto";

const ID = /\b(?:sevt|hand|req|tok|sesn)_[0-9a-z]{26}\b/g;

/**
 * What happened in a run, line by line. Ids are named in the order in which they first appear, so that a run reads the
 * same whatever ran in this process before it.
 */
export class Trace {
  readonly lines: string[] = [];
  readonly #names = new Map<string, string>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Writes a line down, with the time. */
  say(line: string): void {
    this.lines.push(`${this.#now().toFixed(3)} ${line.replace(ID, (id) => this.nameOf(id))}`);
  }

  /** The name of an id in this trace. */
  nameOf(id: string): string {
    let name = this.#names.get(id);
    if (name === undefined) {
      name = `${id.slice(0, id.indexOf("_"))}#${this.#names.size + 1}`;
      this.#names.set(id, name);
    }
    return name;
  }

  /** The whole run in one number: two runs with the same one did the same. */
  hash(): string {
    const hash = createHash("sha256");
    for (const line of this.lines) hash.update(line).update("\n");
    return hash.digest("hex");
  }
}
