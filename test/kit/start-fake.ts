import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Writable } from "node:stream";
import type { JournalEntry } from "../fakes/process/journal.ts";

/** A fake that listens. */
export interface RunningFake {
  readonly process: ChildProcess;
  /** Its "listening" line. */
  readonly listening: Readonly<Record<string, unknown>>;
  /** All it has printed so far, on both streams. */
  output(): string;
  stop(): Promise<void>;
}

/**
 * startFake runs the main file of a fake with an environment made from nothing and its secrets on descriptor 3, and
 * resolves at its "listening" line.
 */
export async function startFake(
  main: URL,
  secrets: object,
  env: Record<string, string> = {},
): Promise<RunningFake> {
  const child = spawn(process.execPath, [main.pathname], {
    env: { GANGLION_LISTEN: "127.0.0.1:0", GANGLION_BOOTSTRAP_FD: "3", PATH: "/usr/bin:/bin", ...env },
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  (child.stdio[3] as Writable).end(JSON.stringify(secrets));
  const printed: string[] = [];
  const listening = Promise.withResolvers<Record<string, unknown>>();
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream as NodeJS.ReadableStream }).on("line", (line) => {
      printed.push(line);
      if (line.startsWith('{"msg":"listening"')) listening.resolve(JSON.parse(line));
    });
  }
  child.once("close", (code) =>
    listening.reject(new Error(`fake ended with ${code}: ${printed.join(" | ")}`)),
  );
  return {
    process: child,
    listening: await listening.promise,
    output: () => printed.join("\n"),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      await once(child, "close");
    },
  };
}

/** A reader of a fake's journal. */
export interface JournalReader {
  /** Entries so far. */
  entries(): Promise<JournalEntry[]>;
  /** Resolves at the first entry that fits, also one already written. */
  waitFor(fits: (entry: JournalEntry) => boolean, timeoutMs?: number): Promise<JournalEntry>;
}

/** readJournal reads the journal of the fake at `url` with its token. */
export function readJournal(url: string, token: string): JournalReader {
  const read = async (after: number, waitMs: number): Promise<JournalEntry[]> => {
    const answer = await fetch(`${url}/journal?after=${after}&wait_ms=${waitMs}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    if (!answer.ok) throw new Error(`journal: ${answer.status}`);
    return ((await answer.json()) as { entries: JournalEntry[] }).entries;
  };
  return {
    entries: () => read(0, 0),
    waitFor: async (fits, timeoutMs = 15_000) => {
      const deadline = Date.now() + timeoutMs;
      for (let after = 0; Date.now() < deadline; ) {
        const entries = await read(after, deadline - Date.now());
        const found = entries.find(fits);
        if (found) return found;
        after = entries.at(-1)?.n ?? after;
      }
      throw new Error(`no such journal entry within ${timeoutMs} ms`);
    },
  };
}
