import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TlsBundle } from "../../common/tls/tls-bundle.ts";

/** ServerOptions say where to listen and with which certificate. */
export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly bundle: TlsBundle;
  readonly handler: (message: IncomingMessage, reply: ServerResponse) => void;
}

/** RunningServer is a server that listens. */
export interface RunningServer {
  readonly address: string;
  /** close stops listening and returns when the requests that run are done. */
  close(): Promise<void>;
  /** closeNow also drops the requests that run. */
  closeNow(): void;
}

const REQUEST_TIMEOUT_MS = 30_000;

/** startServer listens for HTTPS. As with Vault, a caller is known by its token, not by a certificate. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { bundle } = options;
  const server = createServer(
    {
      ...bundle.contextOptions(),
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: REQUEST_TIMEOUT_MS,
      ALPNProtocols: ["http/1.1"],
    },
    options.handler,
  );
  bundle.on("change", () => server.setSecureContext(bundle.contextOptions()));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, resolve);
  });
  const { address, port } = server.address() as AddressInfo;
  return {
    address: address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      }),
    closeNow: () => server.closeAllConnections(),
  };
}
