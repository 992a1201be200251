import { rmSync } from "node:fs";
import { asHandsRoot } from "./as-hands-root.ts";

/**
 * Removes a folder with all that is in it. As an ordinary user with subordinate ids, killed hands may have left files of
 * one of those: their root removes them.
 */
export function removeFolder(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
    asHandsRoot(["rm", "-rf", path]);
  }
}
