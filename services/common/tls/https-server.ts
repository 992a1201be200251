import type { RequestListener } from "node:http";
import { createServer, type Server } from "node:https";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { type SpiffeId, spiffeIdOf } from "./spiffe-id.ts";
import type { TlsBundle } from "./tls-bundle.ts";

/** An HTTPS server of the mesh: TLS 1.3, client certificates required, reloaded with the bundle. */
export function createMeshHttpsServer(bundle: TlsBundle, listener: RequestListener): Server {
  const server = createServer(
    {
      ...bundle.contextOptions(),
      requestCert: true,
      rejectUnauthorized: true,
      handshakeTimeout: 10_000,
      ALPNProtocols: ["http/1.1"],
    },
    listener,
  );
  const onChange = () => server.setSecureContext(bundle.contextOptions());
  bundle.on("change", onChange);
  server.on("close", () => bundle.off("change", onChange));
  return server;
}

/** Who is at the other end of a connection; undefined unless its certificate was verified and is still valid. */
export function peerOf(socket: TLSSocket): SpiffeId | undefined {
  if (!socket.authorized) return undefined;
  const certificate = socket.getPeerCertificate();
  return isCurrent(certificate) ? spiffeIdOf(certificate) : undefined;
}

function isCurrent(certificate: PeerCertificate): boolean {
  return Date.parse(certificate.valid_to) > Date.now();
}
