import type { AnyHandler } from "../../../../services/common/grpc/handlers.ts";
import { unary } from "../../../../services/common/grpc/handlers.ts";
import type { IssueTokenRequest } from "../../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import { SessionServiceService } from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { Role } from "../../../../services/gen/ganglion/types/v1/access.ts";
import { pause } from "../../../../services/harness/driver/pause.ts";
import { createAuditMacs } from "../../../../services/mcp-proxy/domain/audit-macs.ts";
import type { Run } from "../../../../services/mcp-proxy/domain/call-mcp-tool.ts";
import type { Destination } from "../../../../services/mcp-proxy/domain/canonical-url.ts";
import { LiveSessions } from "../../../../services/mcp-proxy/domain/live-sessions.ts";
import type { SecretReader } from "../../../../services/mcp-proxy/domain/ports.ts";
import type { RowMac } from "../../../../services/mcp-proxy/domain/row-mac.ts";
import { bindingService } from "../../../../services/mcp-proxy/rpc/binding-service.ts";
import { decodeCall, encodeCall } from "../../../../services/mcp-proxy/rpc/call-codec.ts";
import { mcpProxyService } from "../../../../services/mcp-proxy/rpc/mcp-proxy-service.ts";
import { clientOf } from "../core/client-of.ts";
import type { Host, Network } from "../core/network.ts";
import { currentProcess, type SimProcess } from "../core/virtual-time.ts";
import type { Effects } from "./effects.ts";
import { mcpUpstream } from "./mcp-upstream.ts";
import { modelDoor } from "./model-door.ts";
import type { ProxyTables } from "./proxy-tables.ts";
import type { ScriptedMind } from "./scripted-mind.ts";

const POLL_MS = 1000;

/** What a boot of the proxy works with. */
export interface ProxyWorld {
  network: Network;
  tables: ProxyTables;
  effects: Effects;
  mac: RowMac;
  /** Where MCP servers and the model are. */
  outside: SimProcess;
  mind: ScriptedMind;
}

// What the policy says is tested elsewhere; here everything is within it.
const BOUND = { judge: () => ({ digest: "", rule: "default" }) };

/** Boots mcp-proxy's real handlers and domain over simulated tables, Vault, MCP servers and model. */
export function bootProxy(process: SimProcess, world: ProxyWorld): Host {
  return currentProcess.run(process, () => {
    const { network, tables, effects, mac, outside, mind } = world;
    const bootId = `boot-${process.random.integer(1, 1e9)}`;
    tables.liveBoot = bootId;
    const spiffeId = `spiffe://ganglion.local/mcp-proxy/${process.name}`;
    const caller = { process, spiffeId, role: Role.ROLE_MCP_PROXY, workspaceId: null };
    const sessions = clientOf(network, caller, "session", "session", SessionServiceService);
    const secrets: SecretReader = {
      read: async () => ({ value: "x", version: 1n, vaultRequestId: "" }),
      known: () => undefined,
    };
    const live = new LiveSessions();
    const macs = createAuditMacs(Buffer.alloc(32, 8));
    const ledger = tables.ledger(bootId);
    const passage = { access: tables.access(), ledger, secrets, mac, bound: BOUND, macs };
    const running = new Map<string, Run>();
    const address = { address: "192.0.2.1", family: 4, class: "public" } as const;
    // Whether an address is still kept decides how many commits a call takes.
    const resolve = Object.assign(async (_destination: Destination) => address, {
      known: () => (process.random.chance(0.5) ? address : undefined),
    });
    const mcp = mcpProxyService({
      ...passage,
      ...{ live, running, resolve, encode: encodeCall, decode: decodeCall, wait: pause },
      mcp: mcpUpstream(process, { network, effects, outside }),
      journal: tables.journal(bootId),
      pins: tables.pins(),
      // No credential of this world is OAuth's.
      renewals: { renew: async () => ({ kind: "none" }), settled: async () => {} },
    });
    const binding = bindingService({
      bindings: tables.bindings(),
      mac,
      ledger,
      getLease: async (sessionId: string) => {
        const { lease } = await sessions.getLease({ sessionId }, { timeoutMs: 4000 });
        return lease && { workspaceId: lease.workspaceId, epoch: lease.epoch, owner: lease.owner };
      },
      prepare: () => () => {},
    } as unknown as Parameters<typeof bindingService>[0]);
    watchFences(process, tables, live);
    const handlers = new Map<string, AnyHandler>();
    for (const [name, handler] of mcp.handlers) handlers.set(pathOf("McpProxyService", name), handler);
    const issue = binding.handlers.get("issueToken") as {
      run: (r: IssueTokenRequest, c: never) => Promise<unknown>;
    };
    handlers.set(
      pathOf("BindingService", "issueToken"),
      unary((request: IssueTokenRequest, ctx) => issue.run(request, ctx as never)),
    );
    handlers.set("/model", modelDoor({ ...passage, live, outside, network, mind }));
    return { process, service: "mcp-proxy", handlers };
  });
}

function pathOf(service: string, method: string): string {
  return `/ganglion.mcpproxy.v1.${service}/${method[0]?.toUpperCase()}${method.slice(1)}`;
}

// By notification, which may be lost, and by polling.
function watchFences(process: SimProcess, { database }: ProxyTables, live: LiveSessions): void {
  const enforce = (): void => {
    const asked = live.sessionIds();
    const fences = asked.flatMap((sessionId) => {
      const fence = database.fences.get(sessionId);
      return fence ? [{ sessionId, ...fence }] : [];
    });
    live.enforce(asked, fences);
  };
  database.onFence = () => {
    if (process.random.chance(0.8)) process.time.at(process.time.now + 1, () => process.deliver(enforce));
  };
  const poll = (): void => {
    if (live.sessionIds().length > 0) enforce();
    process.timer(POLL_MS, poll);
  };
  process.timer(POLL_MS, poll);
}
