import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { type ClientEnv, readClientEnv } from "../../services/cli/up/client-env.ts";
import { askSupervisor } from "../../services/cli/up/control-socket.ts";
import { type MeshFiles, meshFiles, readMesh } from "../../services/cli/up/mesh-files.ts";
import { TlsBundle } from "../../services/common/tls/tls-bundle.ts";
import { removeFolder } from "./remove-folder.ts";

/** What a run of the CLI gave. */
export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** How a mesh is started. */
export interface MeshOptions {
  /** Folder to use; a temporary one, removed by stop(), when it is not given. */
  readonly stateDir?: string;
  /** Further arguments of `ganglion up`. */
  readonly args?: readonly string[];
  /** Further variables of the shell that types `ganglion up`. */
  readonly env?: Record<string, string>;
}

const MAIN = fileURLToPath(new URL("../../services/cli/main.ts", import.meta.url));
const WAIT_MS = 60_000;

/**
 * TestMesh is a whole mesh of its own, started by `ganglion up` in a state folder of its own on free ports. Start it in
 * a `before` hook with a long timeout and stop it in `after`.
 */
export class TestMesh {
  readonly files: MeshFiles;
  readonly #isTemporary: boolean;
  readonly #onExit: () => void;
  #tls: TlsBundle[] = [];

  private constructor(stateDir: string, isTemporary: boolean) {
    this.files = meshFiles(stateDir);
    this.#isTemporary = isTemporary;
    // A test run that ends early must not leave a mesh behind.
    this.#onExit = () =>
      void execFileSync(process.execPath, [MAIN, "down", "--state-dir", stateDir], { stdio: "ignore" });
    process.once("exit", this.#onExit);
  }

  /** Starts a mesh and resolves when it is ready. */
  static async start(options: MeshOptions = {}): Promise<TestMesh> {
    const stateDir = options.stateDir ?? mkdtempSync(join(tmpdir(), "ganglion-mesh-"));
    const mesh = new TestMesh(stateDir, options.stateDir === undefined);
    const { code, stderr } = await mesh.up(options.args, options.env);
    if (code === 0) return mesh;
    await mesh.stop();
    throw new Error(`ganglion up ended with ${code}: ${stderr}`);
  }

  /** Runs `ganglion up` on this mesh's state folder (again). */
  up(args: readonly string[] = [], env: Record<string, string> = {}): Promise<CliResult> {
    return runCli(["up", "--state-dir", this.files.state, "--rest-port", "0", "--grpc-port", "0", ...args], {
      env,
    });
  }

  /** Runs the CLI against this mesh; `see` is told each line of its output while it runs. */
  cli(args: readonly string[], stdin?: string, see?: (line: string) => unknown): Promise<CliResult> {
    return runCli([...args, "--state-dir", this.files.state], {
      ...(stdin === undefined ? {} : { stdin }),
      ...(see ? { see } : {}),
    });
  }

  /** client.env as a client reads it. */
  get env(): ClientEnv {
    return readClientEnv(this.files.clientEnv) ?? {};
  }

  /** Base URL of the REST API. */
  get rest(): string {
    return this.env.ANTHROPIC_BASE_URL as string;
  }

  /** A Ganglion API key. */
  get apiKey(): string {
    return this.env.ANTHROPIC_API_KEY as string;
  }

  /** host:port of the public gRPC address. */
  get grpc(): string {
    return this.env.GANGLION_GRPC_ADDR as string;
  }

  /** host:port of a part by its port's name: "session-1", "mcp-proxy-http", "harness-2-admin", … */
  address(port: string): string {
    return `127.0.0.1:${readMesh(this.files).ports[port]}`;
  }

  /** Folder with ca.pem, cert.pem and key.pem of a holder: "operator", "client", "session-1", … */
  tlsDir(holder: string): string {
    return join(this.files.tls, holder);
  }

  /** A holder's certificate, opened. */
  tls(holder: string): TlsBundle {
    const bundle = new TlsBundle(this.tlsDir(holder));
    this.#tls.push(bundle);
    return bundle;
  }

  /** Process ids of all parts by name; the supervisor is not in it. */
  pids(): Record<string, number> {
    const entries = Object.entries(readMesh(this.files).processes);
    return Object.fromEntries(entries.map(([name, { pid }]) => [name, pid]));
  }

  /** Process id of one part. */
  pid(name: string): number {
    const pid = this.pids()[name];
    if (pid === undefined) throw new Error(`${name} is not running`);
    return pid;
  }

  /** Process id of the supervisor. */
  supervisorPid(): number {
    return readMesh(this.files).supervisor?.pid as number;
  }

  /** Sends a signal to a part; gives the process id it went to. */
  kill(name: string, signal: NodeJS.Signals = "SIGKILL"): number {
    const pid = this.pid(name);
    process.kill(pid, signal);
    return pid;
  }

  /** Resolves when a part is ready again, as another process than `notPid`. */
  async ready(name: string, notPid = 0): Promise<void> {
    const request = { ask: "wait", part: name, notPid } as const;
    if (!(await askSupervisor(this.files.socket, request, () => {}, WAIT_MS)))
      throw new Error("no supervisor is there");
  }

  /** Kills a part and resolves when the supervisor has another one ready. */
  async killAndWait(name: string): Promise<void> {
    await this.ready(name, this.kill(name));
  }

  /** What a part has logged. */
  log(name: string): string {
    return readFileSync(join(this.files.logs, `${name}.log`), "utf8");
  }

  /** Stops the mesh and, where it was temporary, removes its folder. */
  async stop(): Promise<void> {
    for (const bundle of this.#tls) bundle.close();
    this.#tls = [];
    await this.cli(["down"]);
    process.off("exit", this.#onExit);
    if (this.#isTemporary) removeFolder(this.files.state);
  }
}

/** runCli runs the CLI to its end, with nothing of the test's environment but PATH and HOME. */
export async function runCli(
  args: readonly string[],
  options: {
    stdin?: string;
    env?: Record<string, string>;
    cwd?: string;
    see?: (line: string) => unknown;
  } = {},
): Promise<CliResult> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
    ...(options.cwd ? { cwd: options.cwd } : {}),
  });
  // A command that reads nothing may be gone before this is written.
  child.stdin.on("error", () => {});
  child.stdin.end(options.stdin);
  if (options.see) createInterface({ input: child.stdout }).on("line", options.see);
  const exit = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await exit, stdout, stderr };
}
