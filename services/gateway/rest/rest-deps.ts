import type { Context } from "hono";
import type { CallOptions, MeshClient } from "../../common/grpc/create-client.ts";
import type { Logger } from "../../common/log/create-logger.ts";
import type { Metrics } from "../../common/telemetry/metrics.ts";
import type { Tracing } from "../../common/telemetry/tracing.ts";
import type { AgentServiceService } from "../../gen/ganglion/agent/v1/agent_service.ts";
import type { EnvironmentServiceService } from "../../gen/ganglion/agent/v1/environment_service.ts";
import type { SessionServiceService } from "../../gen/ganglion/session/v1/session_service.ts";
import type { VaultServiceService } from "../../gen/ganglion/vault/v1/vault_service.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import type { Caller } from "../auth/caller.ts";
import type { StreamLimits } from "../domain/stream-limits.ts";

/** What the REST API is made of. */
export interface RestDeps {
  readonly listen: string;
  readonly authenticator: Authenticator;
  readonly limits: StreamLimits;
  readonly sessions: MeshClient<typeof SessionServiceService>;
  readonly agents: MeshClient<typeof AgentServiceService>;
  readonly environments: MeshClient<typeof EnvironmentServiceService>;
  readonly vaults: MeshClient<typeof VaultServiceService>;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracing: Tracing;
}

/** What a request carries from the first step to its route. */
export interface RestVariables {
  requestId: string;
  traceId: string;
  traceparent: string;
  caller: Caller;
  /** Options of every call to a service made for this request: who is behind it, and when it is over. */
  call: CallOptions;
}

/** Context of a route. */
export type RestContext = Context<{ Variables: RestVariables }>;
