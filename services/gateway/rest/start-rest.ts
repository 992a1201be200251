import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { createApp } from "./create-app.ts";
import type { RestDeps } from "./rest-deps.ts";

/** The running REST API. */
export interface RestServer {
  readonly address: string;
  /** Ends streams, lets requests finish for the grace, then closes. */
  drain(graceMs: number): Promise<void>;
}

/** startRest listens for the REST API: plain HTTP, meant for loopback. */
export async function startRest(deps: RestDeps): Promise<RestServer> {
  const { app, streams } = createApp(deps);
  const server = createAdaptorServer({ fetch: app.fetch }) as Server;
  // A client may take its time to send 32 MB, and a stream has no end; headers may not.
  server.headersTimeout = 10_000;
  server.requestTimeout = 300_000;
  server.keepAliveTimeout = 65_000;
  const at = deps.listen.lastIndexOf(":");
  const host = deps.listen.slice(0, at);
  server.listen(Number(deps.listen.slice(at + 1)), host.replace(/^\[|\]$/g, ""));
  await once(server, "listening");
  return {
    address: `${host}:${(server.address() as AddressInfo).port}`,
    drain: async (graceMs) => {
      streams.endAll();
      const closed = once(server, "close");
      server.close();
      server.closeIdleConnections();
      const force = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearTimeout(force);
    },
  };
}
