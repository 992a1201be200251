import type { ClientOptions as GrpcClientOptions } from "@grpc/grpc-js";
import { DEFAULT_IMAGE } from "../config/common-fields.ts";
import { TRUST_DOMAIN } from "../tls/spiffe-id.ts";
import type { ClientOptions } from "./client-options.ts";
import { loadContracts } from "./contracts.ts";
import type { Definition } from "./handlers.ts";
import { MAX_MESSAGE_BYTES } from "./message-codec.ts";

const RETRY_POLICY = {
  maxAttempts: 4,
  initialBackoff: "0.1s",
  maxBackoff: "1s",
  backoffMultiplier: 2,
  retryableStatusCodes: ["UNAVAILABLE"],
};

/** Options of the channel under a client. grpc-js takes unknown keys silently: mind the spelling. */
export function channelOptions(
  definition: Definition,
  service: string,
  options: ClientOptions,
): GrpcClientOptions {
  return {
    "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
    "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
    "grpc.keepalive_time_ms": options.keepaliveMs ?? 300_000,
    "grpc.keepalive_timeout_ms": 20_000,
    "grpc.keepalive_permit_without_calls": 0,
    "grpc.initial_reconnect_backoff_ms": 100,
    // A restarted service is back within a second: who waits longer than that answers for it.
    "grpc.max_reconnect_backoff_ms": 500,
    // Addresses are often numbers, which are no server names; who answers is checked by SPIFFE id.
    "grpc.ssl_target_name_override": `${service}.${TRUST_DOMAIN}`,
    // A proxy variable must not move the mesh's traffic. [A021]
    "grpc.enable_http_proxy": 0,
    "grpc.enable_channelz": 0,
    "grpc.use_local_subchannel_pool": 1,
    "grpc.service_config_disable_resolution": 1,
    "grpc.service_config": JSON.stringify({
      loadBalancingConfig: [{ round_robin: {} }],
      methodConfig: retries(definition, options.image === undefined ? DEFAULT_IMAGE : options.image),
    }),
  };
}

// Only unary methods that the contract calls idempotent: nothing else may run twice unasked.
function retries(definition: Definition, image: string | null): unknown[] {
  if (image === null) return [];
  const { methods } = loadContracts(image);
  const name = Object.values(definition)
    .filter((method) => !method.requestStream && !method.responseStream)
    .filter((method) => methods.get(method.path)?.access?.idempotent)
    .map((method) => {
      const [service, rpc] = method.path.slice(1).split("/");
      return { service, method: rpc };
    });
  return name.length === 0 ? [] : [{ name, retryPolicy: RETRY_POLICY }];
}
