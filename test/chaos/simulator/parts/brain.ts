import { pino } from "pino";
import { BindingServiceService } from "../../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import { McpProxyServiceService } from "../../../../services/gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { SandboxServiceService } from "../../../../services/gen/ganglion/sandbox/v1/sandbox_service.ts";
import { SessionServiceService } from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { Role } from "../../../../services/gen/ganglion/types/v1/access.ts";
import { createGrpcEventLog } from "../../../../services/harness/clients/grpc-event-log.ts";
import { createGrpcHands } from "../../../../services/harness/clients/grpc-hands.ts";
import { createGrpcLeases } from "../../../../services/harness/clients/grpc-leases.ts";
import { createGrpcMcpServers } from "../../../../services/harness/clients/grpc-mcp-servers.ts";
import { createGrpcTokens } from "../../../../services/harness/clients/grpc-tokens.ts";
import { rulesEvaluator } from "../../../../services/harness/domain/rules-evaluator.ts";
import { Harness } from "../../../../services/harness/driver/harness.ts";
import type { Hands } from "../../../../services/harness/ports/hands.ts";
import type { Previews } from "../../../../services/harness/ports/leases.ts";
import { clientOf } from "../core/client-of.ts";
import type { Network } from "../core/network.ts";
import { currentProcess, type SimProcess } from "../core/virtual-time.ts";
import { simModel } from "./sim-model.ts";

const silent = pino({ level: "silent" });
const noPreviews: Previews = { start() {}, text() {}, discard() {}, progress() {}, close() {} };

/** How patient brains are in this run. */
export interface BrainTimes {
  callMs: number;
  lingerMs: number;
  pollMs: number;
}

/** What a mutation of the simulator changes for brains. */
export interface BrainRules {
  /** False: every journal says that it never heard of a key. */
  looksUp: boolean;
}

/** Boots a real harness, with its real clients, over the simulated network. */
export function bootBrain(
  process: SimProcess,
  network: Network,
  sandbox: string,
  times: BrainTimes,
  rules: BrainRules,
): Harness {
  return currentProcess.run(process, () => {
    const spiffeId = `spiffe://ganglion.local/harness/${process.name}`;
    const caller = { process, spiffeId, role: Role.ROLE_HARNESS, workspaceId: null };
    const session = clientOf(network, caller, "session", "session", SessionServiceService);
    const sandboxAt = (address: string) =>
      clientOf(network, caller, address, "sandbox", SandboxServiceService);
    const harness = new Harness({
      leases: createGrpcLeases(session),
      ports: {
        log: createGrpcEventLog(session),
        model: simModel({
          ...{ network, caller, to: "proxy", service: "mcp-proxy" },
          ...{ path: "/model", isIdempotent: false },
        }),
        hands: forgetful(createGrpcHands(sandboxAt, sandbox), rules),
        mcp: createGrpcMcpServers(clientOf(network, caller, "proxy", "mcp-proxy", McpProxyServiceService)),
        tokens: createGrpcTokens(clientOf(network, caller, "proxy", "mcp-proxy", BindingServiceService)),
        openPreviews: () => noPreviews,
        evaluator: rulesEvaluator,
      },
      logger: silent,
      patience: { callMs: times.callMs, retryMs: 250, interruptMs: 1000, evaluatorMs: 1000 },
      maxSessions: 16,
      lingerMs: times.lingerMs,
      pollMs: times.pollMs,
      stopGraceMs: 5000,
    });
    void harness.start();
    return harness;
  });
}

function forgetful(hands: Hands, rules: BrainRules): Hands {
  return rules.looksUp
    ? hands
    : { ...hands, address: hands.address, lookUp: async () => ({ kind: "never" }) };
}
