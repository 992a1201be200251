import { type FSWatcher, readdirSync, watch } from "node:fs";
import { join } from "node:path";
import type { TestMesh } from "../../kit/mesh.ts";

const MARK = "ran-";

/**
 * HandEffects sees from the host in which hands a command left its mark, also when the hand and its files are gone
 * later: a call that ran in two hands would show here and nowhere else.
 */
export class HandEffects {
  readonly #folder: string;
  readonly #hands = new Map<string, Set<string>>();
  readonly #watchers: FSWatcher[] = [];

  constructor(mesh: TestMesh) {
    this.#folder = join(mesh.files.state, "sandbox", "bubblewrap", "hands");
  }

  /** Begins to look. False = this user may not look into hands. */
  start(): boolean {
    if (process.getuid?.() !== 0) return false;
    this.#follow(this.#folder, (name) => this.#followHand(name));
    return true;
  }

  /** In how many hands the command of a key was begun. */
  handsOf(key: string): number {
    return this.#hands.get(key)?.size ?? 0;
  }

  stop(): void {
    for (const watcher of this.#watchers.splice(0)) watcher.close();
  }

  #followHand(hand: string): void {
    const folder = join(this.#folder, hand);
    const followWork = () =>
      this.#follow(join(folder, "work"), (name) => {
        if (!name.startsWith(MARK)) return;
        const key = name.slice(MARK.length);
        const hands = this.#hands.get(key) ?? new Set();
        this.#hands.set(key, hands.add(hand));
      });
    // Its work folder is made a moment later.
    this.#follow(folder, (name) => name === "work" && followWork());
  }

  /** Calls back for what is in a folder and for what comes into it; a folder that is gone has nothing more to tell. */
  #follow(folder: string, see: (name: string) => void): void {
    try {
      const watcher = watch(folder, (_, name) => name !== null && see(name));
      watcher.on("error", () => {});
      this.#watchers.push(watcher);
      for (const name of readdirSync(folder)) see(name);
    } catch {
      // Gone already.
    }
  }
}
