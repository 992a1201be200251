import { Counter, Gauge, type Registry } from "prom-client";
import type { Outcome } from "./domain/execution-result.ts";

/** SandboxMetrics counts hands and calls. */
export type SandboxMetrics = { countExecution: (outcome: Outcome) => void };

/** createSandboxMetrics adds the service's own metrics to its registry. */
export function createSandboxMetrics(
  registry: Registry,
  read: { liveHands: () => number; runningCalls: () => number },
): SandboxMetrics {
  const registers = [registry];
  new Gauge({
    name: "ganglion_sandbox_hands",
    help: "Living hands",
    registers,
    collect() {
      this.set(read.liveHands());
    },
  });
  new Gauge({
    name: "ganglion_sandbox_running_calls",
    help: "Tool calls that run now",
    registers,
    collect() {
      this.set(read.runningCalls());
    },
  });
  const executions = new Counter({
    name: "ganglion_sandbox_executions_total",
    help: "Tool calls answered, by outcome",
    labelNames: ["outcome"] as const,
    registers,
  });
  return { countExecution: (outcome) => executions.inc({ outcome }) };
}
