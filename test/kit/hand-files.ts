import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, existsSync, readFileSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AS_HANDS_ROOT, asHandsRoot } from "./as-hands-root.ts";
import type { TestMesh } from "./mesh.ts";

const WAIT_MS = 30_000;

/**
 * HandFiles is a hand's work folder as its host sees it. With it a test knows that a command has begun, how often it
 * took effect, and when it may go on.
 */
export class HandFiles {
  readonly folder: string;

  constructor(mesh: TestMesh, handId: string) {
    this.folder = join(mesh.files.state, "sandbox", "bubblewrap", "hands", handId, "work");
  }

  /** Resolves when a file is there. */
  async appears(name: string): Promise<void> {
    if (!this.#isOurs()) return this.#appearsToOwner(name);
    const path = join(this.folder, name);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new Error(`${name} never came`)), WAIT_MS);
    const watcher = watch(this.folder, () => existsSync(path) && resolve());
    try {
      if (!existsSync(path)) await promise;
    } finally {
      clearTimeout(timer);
      watcher.close();
    }
  }

  /** Makes a file. */
  put(name: string, text = ""): void {
    const path = join(this.folder, name);
    if (this.#isOurs()) writeFileSync(path, text, { mode: 0o644 });
    else asHandsRoot(["sh", "-c", 'cat > "$0" && chmod 644 "$0"', path], text);
  }

  /** Lines of a file. */
  lines(name: string): string[] {
    const path = join(this.folder, name);
    const text = this.#isOurs() ? readFileSync(path, "utf8") : asHandsRoot(["cat", path]);
    return text.trimEnd().split("\n");
  }

  #isOurs(): boolean {
    try {
      accessSync(this.folder, constants.R_OK | constants.W_OK | constants.X_OK);
      return true;
    } catch {
      return false;
    }
  }

  async #appearsToOwner(name: string): Promise<void> {
    const wait = 'until [ -e "$0" ]; do sleep 0.05; done';
    const path = join(this.folder, name);
    const child = spawn("unshare", [...AS_HANDS_ROOT, "sh", "-c", wait, path], { timeout: WAIT_MS });
    const [code] = (await once(child, "exit")) as [number | null];
    if (code !== 0) throw new Error(`${name} never came`);
  }
}

/** A command that says that it began, counts itself, waits for a file "go", and reports its count. */
export const COUNTED_COMMAND =
  "echo ran >> counter; touch begun; until [ -e go ]; do sleep 0.05; done; echo ran $(wc -l < counter) times";
