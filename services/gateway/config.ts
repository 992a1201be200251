import { commonFields } from "../common/config/common-fields.ts";
import { hostPort, hostPorts, replicas } from "../common/config/fields.ts";

/** Settings of the gateway. GANGLION_LISTEN is its own port, for health and operators; the public ones are below. */
export const gatewayFields = {
  ...commonFields,
  GANGLION_PUBLIC_LISTEN: hostPort("where the public gRPC address listens (TLS)", "127.0.0.1:7410"),
  GANGLION_REST_LISTEN: hostPort("where the REST API listens (plain HTTP, loopback)", "127.0.0.1:7400"),
  GANGLION_SESSION_ADDR: replicas("session service"),
  GANGLION_PROXY_ADDR: hostPort("mcp-proxy"),
  GANGLION_SANDBOX_ADDR: hostPort("sandbox service"),
  GANGLION_HARNESS_ADDRS: hostPorts("harnesses, comma-separated"),
};
