import type { AnyHandler } from "../../../../services/common/grpc/handlers.ts";
import { unary } from "../../../../services/common/grpc/handlers.ts";
import { SessionServiceService } from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { Role } from "../../../../services/gen/ganglion/types/v1/access.ts";
import { SessionLeaseSource } from "../../../../services/sandbox/clients/session-lease-source.ts";
import { Executions } from "../../../../services/sandbox/domain/executions.ts";
import { HandRegistry } from "../../../../services/sandbox/domain/hand-registry.ts";
import { LeaseGuard } from "../../../../services/sandbox/domain/lease-guard.ts";
import { cancelExecution } from "../../../../services/sandbox/rpc/cancel-execution.ts";
import { execute } from "../../../../services/sandbox/rpc/execute.ts";
import { getExecution } from "../../../../services/sandbox/rpc/get-execution.ts";
import { provision } from "../../../../services/sandbox/rpc/provision.ts";
import type { SandboxDeps } from "../../../../services/sandbox/rpc/sandbox-deps.ts";
import { clientOf } from "../core/client-of.ts";
import type { Host, Network } from "../core/network.ts";
import { currentProcess, type SimProcess } from "../core/virtual-time.ts";
import type { Effects } from "./effects.ts";
import { SimHandDriver } from "./sim-hands.ts";
import { type JournalRules, type SimDisk, SimJournal } from "./sim-journal.ts";

const PATH = "/ganglion.sandbox.v1.SandboxService/";

/** One boot of a sandbox service. */
export interface SandboxHost extends Host {
  driver: SimHandDriver;
}

/** Boots the sandbox's real handlers and domain over a simulated disk and simulated hands. */
export function bootSandbox(
  process: SimProcess,
  world: { network: Network; disk: SimDisk; effects: Effects; rules: JournalRules },
): SandboxHost {
  return currentProcess.run(process, () => {
    const spiffeId = `spiffe://ganglion.local/sandbox/${process.name}`;
    const caller = { process, spiffeId, role: Role.ROLE_SANDBOX, workspaceId: null };
    const sessions = clientOf(world.network, caller, "session", "session", SessionServiceService);
    const journal = new SimJournal(world.disk, process, world.rules);
    const driver = new SimHandDriver(process, world.effects, world.network.trace);
    const now = (): number => process.time.now;
    const hands = new HandRegistry({
      ...{ driver, journal, maxHands: 64, idleTtlMs: 3_600_000, now, onEvent: () => {} },
    });
    const deps: SandboxDeps = {
      leases: new LeaseGuard(journal, new SessionLeaseSource(sessions)),
      hands,
      executions: new Executions({ hands, journal, now }),
      metrics: { countExecution: () => {} },
      offer: () => ({ driver: driver.name, host: spiffeId, tools: driver.tools, unenforcedLimits: [] }),
      defaultResources: { memoryBytes: 1, cpuMillis: 1, maxProcesses: 1, diskBytes: 1 },
    };
    const handlers: [string, AnyHandler][] = [
      ["Provision", unary((request, ctx) => provision(request as never, ctx, deps))],
      ["Execute", unary((request, ctx) => execute(request as never, ctx, deps))],
      ["CancelExecution", unary((request, ctx) => cancelExecution(request as never, ctx, deps))],
      ["GetExecution", unary((request, ctx) => getExecution(request as never, ctx, deps))],
    ];
    return {
      process,
      service: "sandbox",
      driver,
      handlers: new Map(handlers.map(([name, handler]) => [PATH + name, handler])),
    };
  });
}
