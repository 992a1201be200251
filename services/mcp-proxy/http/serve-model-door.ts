import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createMeshHttpsServer } from "../../common/tls/https-server.ts";
import type { TlsBundle } from "../../common/tls/tls-bundle.ts";
import { type ModelDoorDeps, modelDoor } from "./model-door.ts";

/** A model door that accepts requests. */
export interface RunningDoor {
  /** host:port. */
  address: string;
  /** Answers new requests with DRAINING from now on. */
  drain(): void;
  /** Takes no more connections and resolves when those under way have ended, or after the grace. */
  close(graceMs: number): Promise<void>;
}

/** Starts the model door: HTTPS with client certificates. */
export async function serveModelDoor(
  options: { tls: TlsBundle; listen: string; extraHosts: readonly string[] },
  deps: Omit<ModelDoorDeps, "hosts" | "isDraining">,
): Promise<RunningDoor> {
  let isDraining = false;
  const hosts = new Set(options.extraHosts);
  const server = createMeshHttpsServer(
    options.tls,
    modelDoor({ ...deps, hosts, isDraining: () => isDraining }),
  );
  server.keepAliveTimeout = 65_000;
  server.headersTimeout = 10_000;
  server.requestTimeout = 120_000;
  server.maxHeadersCount = 100;
  const colon = options.listen.lastIndexOf(":");
  const host = options.listen.slice(0, colon);
  server.listen(Number(options.listen.slice(colon + 1)), host.replace(/^\[|\]$/g, ""));
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  for (const name of [host, "127.0.0.1", "localhost"]) hosts.add(`${name.toLowerCase()}:${port}`);
  return {
    address: `${host}:${port}`,
    drain: () => {
      isDraining = true;
    },
    close: async (graceMs) => {
      isDraining = true;
      const closed = once(server, "close");
      server.close();
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearTimeout(timer);
    },
  };
}
