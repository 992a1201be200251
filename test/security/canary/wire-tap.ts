import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const PROGRAM = fileURLToPath(new URL("wire_tap.py", import.meta.url));

/** One direction of a connection, all of its bytes behind each other. */
export interface WireFlow {
  readonly from: number;
  readonly to: number;
  readonly bytes: Buffer;
}

/** Listens on loopback as root; what goes over it while it is open can be read afterwards. */
export class WireTap {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #output: Promise<string>;

  private constructor(child: ChildProcess, folder: string, output: Promise<string>) {
    this.#child = child;
    this.#folder = folder;
    this.#output = output;
  }

  /** Opens a tap; undefined for a user who may not. */
  static async open(): Promise<WireTap | undefined> {
    if (process.getuid?.() !== 0) return undefined;
    const folder = mkdtempSync(join(tmpdir(), "ganglion-wire-"));
    const child = spawn("python3", [PROGRAM, join(folder, "wire")], { stdio: ["pipe", "pipe", "inherit"] });
    const output = text(child.stdout);
    // The first bytes say that it listens; text() gets them too.
    await once(child.stdout, "data");
    return new WireTap(child, folder, output);
  }

  /** Closes it and gives what went by. Fails when packets were lost: then it would prove nothing. */
  async close(): Promise<WireFlow[]> {
    this.#child.stdin?.end();
    const said = await this.#output;
    try {
      if (!/dropped 0\n$/.test(said)) throw new Error(`the tap lost packets: ${said.trim()}`);
      const flows = new Map<string, { from: number; to: number; parts: Buffer[] }>();
      for (const line of readFileSync(join(this.#folder, "wire"), "utf8").split("\n")) {
        const [from, to, hex] = line.split(" ");
        if (!from || !to || !hex) continue;
        const key = `${from} ${to}`;
        const flow = flows.get(key) ?? { from: Number(from), to: Number(to), parts: [] };
        flow.parts.push(Buffer.from(hex, "hex"));
        flows.set(key, flow);
      }
      return [...flows.values()].map(({ from, to, parts }) => ({ from, to, bytes: Buffer.concat(parts) }));
    } finally {
      rmSync(this.#folder, { recursive: true, force: true });
    }
  }
}
