import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { expectService } from "../../common/tls/check-server.ts";
import { TRUST_DOMAIN } from "../../common/tls/spiffe-id.ts";
import type { TlsBundle } from "../../common/tls/tls-bundle.ts";

const SERVICE = "mcp-proxy";
const DIAL_MS = 5_000;

/** ProxyDialer connects to the egress door of mcp-proxy, at whichever replica answers. */
export class ProxyDialer {
  readonly #addresses: readonly string[];
  readonly #tls: TlsBundle;
  #next = 0;

  constructor(addresses: readonly string[], tls: TlsBundle) {
    this.#addresses = addresses;
    this.#tls = tls;
  }

  /** dial resolves with a connection to a mcp-proxy of the mesh; rejects when no replica takes one. */
  async dial(signal: AbortSignal): Promise<TLSSocket> {
    const first = this.#next;
    this.#next += 1;
    let failure: unknown;
    for (let tried = 0; tried < this.#addresses.length; tried += 1) {
      try {
        return await this.#dialOne(this.#addresses[(first + tried) % this.#addresses.length]!, signal);
      } catch (error) {
        if (signal.aborted) throw error;
        failure = error;
      }
    }
    throw failure;
  }

  #dialOne(address: string, signal: AbortSignal): Promise<TLSSocket> {
    const at = address.lastIndexOf(":");
    const options: ConnectionOptions & { allowHalfOpen: boolean } = {
      host: address.slice(0, at).replace(/^\[|\]$/g, ""),
      port: Number(address.slice(at + 1)),
      // The newest certificate, and each time a full handshake: who answers is asked anew.
      secureContext: this.#tls.secureContext(),
      servername: `${SERVICE}.${TRUST_DOMAIN}`,
      checkServerIdentity: expectService(SERVICE),
      allowHalfOpen: true,
    };
    return new Promise((resolve, reject) => {
      const socket = connect(options);
      const fail = (error: Error) => {
        socket.destroy();
        signal.removeEventListener("abort", onAbort);
        reject(error);
      };
      const onAbort = () => fail(new Error("nobody waits for the connection any more"));
      signal.addEventListener("abort", onAbort, { once: true });
      socket.setTimeout(DIAL_MS, () => fail(new Error("mcp-proxy did not answer in time")));
      socket.once("error", fail);
      socket.once("secureConnect", () => {
        signal.removeEventListener("abort", onAbort);
        socket.removeListener("error", fail);
        socket.removeAllListeners("timeout").setTimeout(0);
        resolve(socket);
      });
      if (signal.aborted) onAbort();
    });
  }
}
