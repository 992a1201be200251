import { existsSync, readFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { meshFiles } from "../up/mesh-files.ts";
import { probeReady } from "../up/probe-ready.ts";
import { type Finding, ill, weak, well } from "./finding.ts";
import type { PartReport } from "./mesh-report.ts";

/** A busy machine is not an ill part. */
const TIMEOUT_MS = 5000;

/** examinePart asks a part itself how it is, and says what the supervisor knows where it does not answer. */
export async function examinePart(
  part: PartReport,
  ports: Record<string, number>,
  stateDir: string,
): Promise<Finding> {
  const log = join(meshFiles(stateDir).logs, `${part.name}.log`);
  if (part.pid === undefined) {
    const why = part.lastExit ? `, it ${part.lastExit}` : "";
    return ill(part.name, `not running (${part.state}${why})`, `see ${log}`);
  }
  const restarted = part.restarts > 0 ? `, restarted ${part.restarts} times` : "";
  if (part.name === "vault") return examineVault(part, ports.vault as number, stateDir, restarted);
  const admin = ports[`${part.name}-admin`];
  if (admin === undefined) {
    return part.state === "ready"
      ? well(part.name, `running${restarted}`)
      : ill(part.name, part.state, `see ${log}`);
  }
  const readiness = await probeReady(`127.0.0.1:${admin}`, TIMEOUT_MS);
  if (!readiness.reachable) return ill(part.name, `runs but does not answer${restarted}`, `see ${log}`);
  const broken = readiness.parts.filter(({ ok }) => !ok);
  if (readiness.ok) return well(part.name, `ready${restarted}`);
  const causes = broken.map(({ name, detail }) => (detail ? `${name}: ${detail}` : name)).join("; ");
  return ill(part.name, `not ready (${causes || "no reason given"})${restarted}`, `see ${log}`);
}

async function examineVault(
  part: PartReport,
  port: number,
  stateDir: string,
  restarted: string,
): Promise<Finding> {
  const status = await sealStatus(port, readFileSync(join(meshFiles(stateDir).tls, "ca.pem")));
  if (!status)
    return ill(part.name, "runs but does not answer", `see ${join(meshFiles(stateDir).logs, "vault.log")}`);
  if (status.sealed) {
    const keysFile = join(stateDir, "vault", "keys.json");
    // Nothing but its key opens it, and there is no second one.
    return existsSync(keysFile)
      ? ill(part.name, "sealed", "ganglion down, then ganglion up unseals it")
      : ill(
          part.name,
          `sealed, and its unseal key is gone (${keysFile})`,
          "restore that file from a backup; without it the stored credentials are lost: make clean-state",
        );
  }
  return restarted ? weak(part.name, `unsealed${restarted}`) : well(part.name, "unsealed");
}

function sealStatus(port: number, ca: Buffer): Promise<{ sealed: boolean } | undefined> {
  return new Promise((resolve) => {
    const options = {
      host: "127.0.0.1",
      port,
      path: "/v1/sys/seal-status",
      ca,
      timeout: TIMEOUT_MS,
      agent: false,
    };
    const call = request(options, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        body += chunk;
      });
      response.on("end", () => {
        try {
          resolve(JSON.parse(body) as { sealed: boolean });
        } catch {
          resolve(undefined);
        }
      });
    });
    call.on("timeout", () => call.destroy());
    call.on("error", () => resolve(undefined));
    call.end();
  });
}
