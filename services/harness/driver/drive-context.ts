import type { Logger } from "../../common/log/create-logger.ts";
import type { EventLog } from "../ports/event-log.ts";
import type { Hands } from "../ports/hands.ts";
import type { Previews, Tokens } from "../ports/leases.ts";
import type { McpServers } from "../ports/mcp-servers.ts";
import type { Model } from "../ports/model.ts";
import type { PermissionEvaluator } from "../ports/permission-evaluator.ts";
import type { CacheShare } from "./cache-share.ts";
import type { Checkpoints } from "./checkpoints.ts";
import type { HandKeeper } from "./hand-keeper.ts";
import type { PayloadReader } from "./payload-reader.ts";
import type { SessionLog } from "./session-log.ts";
import type { TokenKeeper } from "./token-keeper.ts";

/** The parts of the mesh that one session's driver uses. */
export interface DrivePorts {
  model: Model;
  hands: Hands;
  mcp: McpServers;
  tokens: Tokens;
  log: EventLog;
  evaluator: PermissionEvaluator;
}

/** How patient a driver is with parts that do not answer. */
export interface Patience {
  /** Tools: how long a call is tried again by its key. */
  callMs: number;
  /** Wait between two tries of a call. */
  retryMs: number;
  /** How long an interrupt waits for what a running call came to. */
  interruptMs: number;
  /** How long the evaluator of the policy "auto" may take over one call. */
  evaluatorMs: number;
}

/** Everything the steps of one driver share. */
export interface DriveContext {
  log: SessionLog;
  ports: DrivePorts;
  token: TokenKeeper;
  payloads: PayloadReader;
  cacheShare: CacheShare;
  checkpoints: Checkpoints;
  hand: HandKeeper;
  previews: Previews;
  logger: Logger;
  traceparent: string;
  /** Calls whose intent this very driver wrote: nobody else can have started them. */
  ownCalls: Set<string>;
  /** Calls that this driver has asked a host or the proxy to run. */
  attempted: Set<string>;
  /** MCP servers whose tools changed since they were written down (B088). */
  changedServers: Set<string>;
  /** Calls that an interrupt closed without knowing what they came to. */
  closedBlindly: Set<string>;
  /** The lease is lost or the process goes down: stop at once and write nothing. */
  signal: AbortSignal;
  /** Let go of the session at the next safe point. */
  stop: AbortSignal;
  patience: Patience;
  random: () => number;
}
