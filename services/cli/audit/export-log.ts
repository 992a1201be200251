import { closeSync, fsyncSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Mesh } from "../client/connect-mesh.ts";
import { readLiveLines } from "./live-records.ts";

const PAGE = 1000;

/**
 * Writes the running mesh's log, checkpoints and keys to a folder, as `ganglion audit verify --dir` reads them. Records
 * first: a checkpoint that is made meanwhile then covers more than what was written, so they are cut to what was.
 */
export async function exportLog(
  mesh: Mesh,
  folder: string,
): Promise<{ records: number; checkpoints: number }> {
  const { json } = await mesh.audit.getPublicKeys({});
  writeFileSync(join(folder, "keys.json"), json, { mode: 0o600 });
  const file = openSync(join(folder, "records.jsonl"), "w", 0o600);
  let records = 0;
  try {
    for await (const line of readLiveLines(mesh)) {
      writeSync(file, `${line}\n`);
      records += 1;
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  const notes: string[] = [];
  for (let afterSize = 0n; ; ) {
    const { checkpoints } = await mesh.audit.listCheckpoints({ afterSize, limit: PAGE });
    for (const { size, note } of checkpoints) if (size <= BigInt(records)) notes.push(`${note}\n`);
    const last = checkpoints.at(-1);
    if (!last) break;
    afterSize = last.size;
  }
  writeFileSync(join(folder, "checkpoints.notes"), notes.join(""), { mode: 0o600 });
  return { records, checkpoints: notes.length };
}
