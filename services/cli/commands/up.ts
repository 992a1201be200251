import { readFileSync } from "node:fs";
import { readPolicy } from "../../common/policy/read-policy.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { askSupervisor } from "../up/control-socket.ts";
import { installLine, installPackages, missingPackages } from "../up/debian-packages.ts";
import { launchSupervisor } from "../up/launch-supervisor.ts";
import { meshFiles } from "../up/mesh-files.ts";
import { MAX_SESSION_REPLICAS } from "../up/mesh-services.ts";
import { readOperatorFile } from "../up/operator-file.ts";
import { outsideServers } from "../up/outside-servers.ts";
import type { Command, Invocation } from "./command.ts";
import { stopMesh } from "./down.ts";

/** `ganglion up` starts a mesh on this machine, in the background. */
export const up: Command = {
  name: "up",
  usage: "",
  summary: "start the mesh in the background on this machine",
  details: [
    "PGHOST… and VAULT_ADDR… of the shell replace the embedded PostgreSQL and vault.",
    "A second mesh needs its own --state-dir, --rest-port and --grpc-port; 0 takes any free port.",
    "--session-replicas runs that many session services side by side (1 to 8).",
    "--scripted-model answers with a script instead of a model, --no-scripted-model never does;",
    "without either the script answers until a model key is stored (ganglion vault model-key).",
    "--scripted-model-url uses a stand-in that is run elsewhere; store its key with vault model-key --url.",
    "--allow-http-hosts lets sessions reach MCP servers there (host:port, comma-separated) over plain HTTP, on",
    "private addresses or this machine; none by default.",
    "--model-prices names a JSON file with what models cost (services/session/README.md); only models in it can have",
    "a budget.",
    "--evaluator names a JavaScript module, one file, that decides on calls under the permission policy auto",
    "(services/harness/README.md); without it the built-in rules do.",
    "--policy names the operator's policy, the upper bound on what sessions may reach (ganglion policy lint checks one);",
    "without it deploy/local/policy.yaml is in force.",
    "--upstream-ca names a PEM file with authorities that servers outside may have beside the public ones.",
  ],
  options: {
    "rest-port": { type: "string", default: "7400" },
    "grpc-port": { type: "string", default: "7410" },
    "session-replicas": { type: "string", default: "1" },
    "scripted-model": { type: "boolean" },
    "scripted-model-url": { type: "string" },
    "allow-http-hosts": { type: "string" },
    "model-prices": { type: "string" },
    evaluator: { type: "string" },
    "upstream-ca": { type: "string" },
    policy: { type: "string" },
    foreground: { type: "boolean", default: false },
  },
  arity: [0, 0],
  run: runUp,
};

async function runUp(invocation: Invocation): Promise<number> {
  const { terminal, stateDir, options } = invocation;
  const sessionReplicas = replicasOf(options);
  const ports = { restPort: portOf(options, "rest-port"), grpcPort: portOf(options, "grpc-port") };
  if (await reportRunning(invocation)) return EXIT.ok;
  if (ports.restPort !== 0 && ports.restPort === ports.grpcPort) {
    throw new CliError("--rest-port and --grpc-port must differ", EXIT.usage);
  }
  const { "model-prices": pricesFile, evaluator: evaluatorFile } = options;
  const modelPrices =
    typeof pricesFile === "string" ? readOperatorFile("model-prices", pricesFile, JSON.parse) : undefined;
  const evaluator =
    typeof evaluatorFile === "string" ? readOperatorFile("evaluator", evaluatorFile) : undefined;
  const { "upstream-ca": caFile, policy: policyFile } = options;
  const policy =
    typeof policyFile === "string" ? readOperatorFile("policy", policyFile, readPolicy) : undefined;
  const upstreamCa =
    typeof caFile === "string" ? readOperatorFile("upstream-ca", caFile, checkCertificates) : undefined;
  const progress = terminal.progress();
  ensurePackages((what) => progress.set(what));
  const begun = new Map<string, number>();
  try {
    await launchSupervisor(
      {
        state: stateDir,
        ...ports,
        sessionReplicas,
        scriptedModel:
          options["scripted-model"] === undefined ? "auto" : options["scripted-model"] ? "on" : "off",
        ...(typeof options["scripted-model-url"] === "string"
          ? { scriptedModelUrl: options["scripted-model-url"] }
          : {}),
        allowHttpHosts: String(options["allow-http-hosts"] ?? ""),
        ...(modelPrices === undefined ? {} : { modelPrices }),
        ...(evaluator === undefined ? {} : { evaluator }),
        ...(upstreamCa === undefined ? {} : { upstreamCa }),
        ...(policy === undefined ? {} : { policy }),
        ...outsideServers(process.env, (path) => readFileSync(path, "utf8")),
      },
      (line) => {
        terminal.object(line);
        if (!("step" in line)) return;
        if (line.state === "begun") begun.set(line.step, Date.now());
        else begun.delete(line.step);
        progress.set(`waiting for ${[...begun.keys()].join(", ")}`);
      },
    );
  } catch (error) {
    throw explain(error as Error);
  } finally {
    progress.clear();
  }
  await reportRunning(invocation, true);
  return options.foreground ? stayInForeground(invocation) : EXIT.ok;
}

function checkCertificates(text: string): void {
  if (!text.includes("-----BEGIN CERTIFICATE-----")) throw new Error("it holds no certificate in PEM");
  if (text.includes("PRIVATE KEY")) throw new Error("it holds a private key");
}

function ensurePackages(say: (what: string) => void): void {
  const missing = missingPackages();
  if (missing.length === 0) return;
  if (process.getuid?.() !== 0) {
    throw new CliError(
      `hands need ${missing.join(" and ")}, which is not installed`,
      EXIT.osError,
      installLine(missing),
    );
  }
  say(`installing ${missing.join(" and ")}`);
  installPackages(missing);
}

async function reportRunning({ terminal, stateDir }: Invocation, isNew = false): Promise<boolean> {
  const files = meshFiles(stateDir);
  return askSupervisor(files.socket, { ask: "status" }, (status) => {
    const ports = (status.ports ?? {}) as Record<string, number>;
    if (!isNew) terminal.object({ alreadyUp: true, ports });
    terminal.line(terminal.style("green", isNew ? "the mesh is up" : "the mesh is up already"));
    terminal.pair("REST", `http://127.0.0.1:${ports.rest}`);
    terminal.pair("gRPC", `127.0.0.1:${ports.grpc}`);
    terminal.pair("clients", files.clientEnv);
    if (status.scriptedModel) {
      terminal.pair("model", "scripted model (no real one answers; see ganglion vault model-key)");
    }
  });
}

function portOf(options: Invocation["options"], name: string): number {
  const port = Number(options[name]);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new CliError(`--${name} must be a port number`, EXIT.usage);
  }
  return port;
}

function replicasOf(options: Invocation["options"]): number {
  const count = Number(options["session-replicas"]);
  if (!Number.isInteger(count) || count < 1 || count > MAX_SESSION_REPLICAS) {
    throw new CliError(`--session-replicas must be 1 to ${MAX_SESSION_REPLICAS}`, EXIT.usage);
  }
  return count;
}

function explain(error: Error): CliError {
  const taken = /^port (\d+) on 127\.0\.0\.1 is taken/.test(error.message);
  return taken
    ? new CliError(
        error.message,
        EXIT.unavailable,
        "another port: --rest-port and --grpc-port (0 = any free one)",
      )
    : new CliError(error.message, EXIT.unavailable);
}

async function stayInForeground(invocation: Invocation): Promise<number> {
  const stop = Promise.withResolvers<void>();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.resolve());
  invocation.terminal.line("ctrl-c stops it");
  // Nothing else keeps this process.
  const keep = setInterval(() => {}, 60_000);
  await stop.promise;
  clearInterval(keep);
  await stopMesh(invocation);
  return EXIT.ok;
}
