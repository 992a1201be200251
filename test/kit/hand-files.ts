import { existsSync, readFileSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
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
    writeFileSync(join(this.folder, name), text, { mode: 0o644 });
  }

  /** Lines of a file. */
  lines(name: string): string[] {
    return readFileSync(join(this.folder, name), "utf8").trimEnd().split("\n");
  }
}

/** A command that says that it began, counts itself, waits for a file "go", and reports its count. */
export const COUNTED_COMMAND =
  "echo ran >> counter; touch begun; until [ -e go ]; do sleep 0.05; done; echo ran $(wc -l < counter) times";
