import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { namesHost } from "./names-host.ts";
import type { SessionAuthorities } from "./session-authority.ts";

const HANDSHAKE_MS = 10_000;

/**
 * Ends a hand's TLS connection here, with a certificate of its session's authority, and answers the plain stream; undefined
 * when the hand does not want that, or greets another host than the one it asked for.
 */
export async function intercept(
  authorities: SessionAuthorities,
  { socket, sessionId, host }: { socket: Duplex; sessionId: string; host: string },
): Promise<TLSSocket | undefined> {
  const secureContext = await authorities.context(sessionId, host);
  const inner = new TLSSocket(socket as ConstructorParameters<typeof TLSSocket>[0], {
    isServer: true,
    secureContext,
    ALPNProtocols: ["http/1.1"],
  });
  inner.on("error", () => inner.destroy());
  return new Promise((resolve) => {
    const timer = setTimeout(() => inner.destroy(), HANDSHAKE_MS);
    inner.once("close", () => {
      clearTimeout(timer);
      resolve(undefined);
    });
    inner.once("secure", () => {
      clearTimeout(timer);
      const { servername } = inner as TLSSocket & { servername?: string | false | null };
      if (namesHost(servername || undefined, host)) resolve(inner);
      else inner.destroy();
    });
  });
}
