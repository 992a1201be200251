import { DEFAULT_IMAGE } from "../../../../services/common/config/common-fields.ts";
import { loadContracts } from "../../../../services/common/grpc/contracts.ts";
import type { MeshClient } from "../../../../services/common/grpc/create-client.ts";
import type { Definition } from "../../../../services/common/grpc/handlers.ts";
import { callOnce } from "./call-once.ts";
import { callStream } from "./call-stream.ts";
import type { CallerIdentity } from "./caller-identity.ts";
import type { Network } from "./network.ts";

/** A client like createClient's, over the simulated network. */
export function clientOf<D extends Definition>(
  network: Network,
  caller: CallerIdentity,
  to: string,
  service: string,
  definition: D,
): MeshClient<D> {
  const { methods } = loadContracts(DEFAULT_IMAGE);
  const client: Record<string, unknown> = { close: () => {}, waitForReady: async () => {} };
  for (const [name, { path, responseStream }] of Object.entries(definition)) {
    const isIdempotent = methods.get(path)?.access?.idempotent === true;
    const route = { network, caller, to, service, path, isIdempotent };
    client[name] = responseStream
      ? (request: unknown, options = {}) => callStream(route, request, options)
      : (request: unknown, options = {}) => callOnce(route, request, options);
  }
  return client as MeshClient<D>;
}
