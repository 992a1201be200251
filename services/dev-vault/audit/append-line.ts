import { closeSync, openSync, writeSync } from "node:fs";

/** appendLine adds a line to a file, which is opened anew each time so that it can be rotated away at any moment. */
export function appendLine(path: string, line: string): void {
  const file = openSync(path, "a", 0o600);
  try {
    const content = Buffer.from(`${line}\n`);
    const written = writeSync(file, content);
    if (written !== content.length) throw new Error("the line could not be written as a whole");
  } finally {
    closeSync(file);
  }
}
