import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";

/** State of one thing a service depends on. */
export interface ReadinessPart {
  name: string;
  ok: boolean;
  /** Why not; no secrets. */
  detail?: string;
}

/** A running admin server. */
export interface AdminServer {
  address: string;
  close(): Promise<void>;
}

/** What the admin server answers with. */
export interface AdminOptions {
  /** host:port; loopback by default, plain HTTP. The only name, beside those of loopback, that it answers to. */
  listen: string;
  registry: Registry;
  /** Parts this process needs, asked on each /readyz. */
  readiness: () => Promise<ReadinessPart[]>;
}

/**
 * Starts the admin port: /healthz says that the process lives (never asks a dependency),
 * /readyz whether it can work now and which part is ill, /metrics gives Prometheus text. A request for another host is
 * refused: behind it may be a web page whose name was made to point here [A040].
 */
export async function startAdminServer(options: AdminOptions): Promise<AdminServer> {
  const at = options.listen.lastIndexOf(":");
  const listenHost = options.listen.slice(0, at);
  const names = new Set(["localhost", "127.0.0.1", "[::1]", listenHost.toLowerCase()]);
  const server = createServer((request, response) => {
    const send = (status: number, type: string, body: string) => {
      response.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(body);
    };
    const fail = () => send(500, "application/json", `{"error":"internal error"}\n`);
    const path = (request.url ?? "").split("?")[0];
    if (!names.has(hostOf(request.headers.host))) {
      send(421, "application/json", `{"error":"another host"}\n`);
    } else if (request.method !== "GET" && request.method !== "HEAD") {
      send(405, "application/json", `{"error":"GET only"}\n`);
    } else if (path === "/healthz") {
      send(200, "application/json", `{"ok":true}\n`);
    } else if (path === "/readyz") {
      options.readiness().then((parts) => {
        const ok = parts.every((part) => part.ok);
        send(ok ? 200 : 503, "application/json", `${JSON.stringify({ ok, parts })}\n`);
      }, fail);
    } else if (path === "/metrics") {
      options.registry.metrics().then((body) => send(200, options.registry.contentType, body), fail);
    } else {
      send(404, "application/json", `{"error":"not found"}\n`);
    }
  });
  server.requestTimeout = 10_000;
  server.headersTimeout = 10_000;
  const host = listenHost.replace(/^\[|\]$/g, "");
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(Number(options.listen.slice(at + 1)), host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    address: `${listenHost}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The host that a request names, without its port. */
function hostOf(header: string | undefined): string {
  return (header ?? "").toLowerCase().replace(/:\d{1,5}$/, "");
}
