import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { TlsBundle } from "../../services/common/tls/tls-bundle.ts";
import { removeFolder } from "../kit/remove-folder.ts";

const CLI = fileURLToPath(new URL("../../services/cli/main.ts", import.meta.url));

/** A mesh of the demo's own, beside whatever else runs on the machine. */
export interface DemoMesh {
  readonly state: string;
  /** Contents of client.env. */
  readonly env: Readonly<Record<string, string>>;
  /** The operator's certificate. */
  readonly tls: TlsBundle;
  /** Process ids of everything that the mesh runs, the supervisor included, as they are now. */
  pids(): Record<string, number>;
  /** Runs the CLI against the mesh; `input` is its standard input. Returns what it printed. */
  cli(args: string[], input?: string): Promise<string>;
  down(): Promise<void>;
}

/** Starts a mesh with the real `ganglion up`, in a state folder that is removed at the end. */
export async function startDemoMesh(
  upstreams: { readonly mcpUrl: string; readonly modelUrl: string },
  show: (line: string) => void,
): Promise<DemoMesh> {
  const state = mkdtempSync(join(tmpdir(), "ganglion-demo-"));
  const cli = (args: string[], input = "") => runCli([...args, "--state-dir", state], input, show);
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    // The mesh is a background process of its own: an interrupted demo must not leave it behind.
    process.once(signal, () => {
      show("interrupted: the mesh is being stopped");
      cli(["down"])
        .catch((error: Error) => show(error.message))
        .finally(() => {
          removeFolder(state);
          process.exit(130);
        });
    });
  }
  try {
    await cli([
      "up",
      ...["--rest-port", "0", "--grpc-port", "0"],
      ...["--scripted-model-url", upstreams.modelUrl],
      ...["--allow-http-hosts", new URL(upstreams.mcpUrl).host],
    ]);
  } catch (error) {
    await cli(["down"]).catch(() => {});
    removeFolder(state);
    throw error;
  }
  const lines = readFileSync(join(state, "client.env"), "utf8").trim().split("\n");
  const env = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
  return {
    state,
    env,
    tls: new TlsBundle(dirname(env.GANGLION_CERT as string)),
    pids: () => {
      const mesh = JSON.parse(readFileSync(join(state, "mesh.json"), "utf8")) as {
        supervisor: { pid: number };
        processes: Record<string, { pid: number }>;
      };
      const all = Object.entries({ supervisor: mesh.supervisor, ...mesh.processes });
      return Object.fromEntries(all.map(([name, { pid }]) => [name, pid]));
    },
    cli,
    down: async () => {
      await cli(["down"]);
      removeFolder(state);
    },
  };
}

function runCli(args: string[], input: string, show: (line: string) => void): Promise<string> {
  const child = spawn(process.execPath, [CLI, ...args], { stdio: ["pipe", "pipe", "pipe"] });
  let printed = "";
  let complaints = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
    if (args[0] === "up") for (const line of text.trimEnd().split("\n")) show(line);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve(printed);
      else
        reject(new Error(`ganglion ${args[0]} ended with ${code}: ${complaints.trim() || printed.trim()}`));
    });
  });
}
