import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as pass } from "node:timers/promises";
import type { Benchmark } from "../report/run-suites.ts";
import { median } from "../report/statistics.ts";
import type { MeshStand } from "../stands/mesh-stand.ts";

const SERVICES = ["session", "harness", "sandbox", "mcp-proxy", "gateway", "vault", "supervisor"] as const;
const SETTLE_MS = 3_000;
const SAMPLES = 5;
/** Kibibytes in a mebibyte. */
export const KIB_PER_MIB = 1024;

/** Resident memory of each service of an idle mesh, against a Node process that does nothing. */
export const rssBenchmark: Benchmark<MeshStand> = {
  figures: SERVICES.map((service) => `rss_mib_${service}`),
  async run({ mesh }, { report }) {
    await pass(SETTLE_MS);
    const baseline = await bareNodeMib();
    const pids = { ...mesh.pids(), supervisor: mesh.supervisorPid() };
    const samples = new Map<string, number[]>(SERVICES.map((service) => [service, []]));
    for (let n = 0; n < SAMPLES; n++) {
      for (const [name, pid] of Object.entries(pids)) {
        samples.get(name.replace(/-\d+$/, ""))?.push(rssMib(pid));
      }
      await pass(200);
    }
    for (const [service, mib] of samples) {
      // Two harnesses run: the figure is that of one.
      if (mib.length === 0) throw new Error(`no process of ${service} is running`);
      const value = median(mib);
      report({
        name: `rss_mib_${service}`,
        value,
        unit: "MiB",
        baseline,
        ratio: value / baseline,
        n: mib.length,
      });
    }
  },
};

/** rssMib reads how much of a process is in memory. */
export function rssMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kib === undefined) throw new Error(`process ${pid} has no memory`);
  return Number(kib) / KIB_PER_MIB;
}

async function bareNodeMib(): Promise<number> {
  const script = "process.stdout.write('up'); setInterval(() => {}, 1000)";
  const child = spawn(process.execPath, ["-e", script], { env: {}, stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  const mib = rssMib(child.pid as number);
  child.kill("SIGKILL");
  await once(child, "exit");
  return mib;
}
