import { type ClientOptions, createClient, type MeshClient } from "../../common/grpc/create-client.ts";
import type { TlsBundle } from "../../common/tls/tls-bundle.ts";
import { BindingServiceService } from "../../gen/ganglion/mcpproxy/v1/binding_service.ts";
import { McpProxyServiceService } from "../../gen/ganglion/mcpproxy/v1/mcp_proxy_service.ts";
import { SandboxServiceService } from "../../gen/ganglion/sandbox/v1/sandbox_service.ts";
import { EmitEventsRequest, SessionServiceService } from "../../gen/ganglion/session/v1/session_service.ts";

export type SessionClient = MeshClient<typeof SessionServiceService>;
export type SandboxClient = MeshClient<typeof SandboxServiceService>;
export type BindingClient = MeshClient<typeof BindingServiceService>;
export type McpProxyClient = MeshClient<typeof McpProxyServiceService>;

/** Where the parts are that a harness dials. */
export interface ServiceAddresses {
  session: readonly string[];
  sandbox: string;
  proxy: string;
}

/** The clients of a harness; each accepts its own service's certificate only. */
export interface ServiceClients {
  session: SessionClient;
  binding: BindingClient;
  mcp: McpProxyClient;
  /** A hand is reached where it was made, which the log says. */
  sandboxAt: (address: string) => SandboxClient;
  close(): void;
}

/** Makes the clients; nothing is dialled before the first call. */
export function createServiceClients(
  addresses: ServiceAddresses,
  tls: TlsBundle,
  options: ClientOptions,
): ServiceClients {
  const sandboxes = new Map<string, SandboxClient>();
  const sandboxAt = (address: string): SandboxClient => {
    let client = sandboxes.get(address);
    if (!client) {
      client = createClient(SandboxServiceService, address, tls, "sandbox", options);
      sandboxes.set(address, client);
    }
    return client;
  };
  const session = createClient(SessionServiceService, addresses.session, tls, "session", {
    ...options,
    largeRequests: { emitEvents: EmitEventsRequest },
  });
  const binding = createClient(BindingServiceService, addresses.proxy, tls, "mcp-proxy", options);
  const mcp = createClient(McpProxyServiceService, addresses.proxy, tls, "mcp-proxy", options);
  return {
    session,
    binding,
    mcp,
    sandboxAt,
    close() {
      for (const client of [session, binding, mcp, ...sandboxes.values()]) client.close();
    },
  };
}
