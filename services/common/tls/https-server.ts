import type { RequestListener } from "node:http";
import { createServer, type Server } from "node:https";
import type { TLSSocket } from "node:tls";
import { type SpiffeId, spiffeIdWithDigest } from "./spiffe-id.ts";
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

interface Peer {
  id: SpiffeId | undefined;
  /** Epoch milliseconds at which the certificate stops counting. */
  until: number;
}

// Reading a certificate costs as much as handling a small request, and it cannot change during a connection (TLS 1.3).
const peers = new WeakMap<TLSSocket, Peer>();

/** Who is at the other end of a connection; undefined unless its certificate was verified and is still valid. */
export function peerOf(socket: TLSSocket): SpiffeId | undefined {
  if (!socket.authorized) return undefined;
  let peer = peers.get(socket);
  if (!peer) {
    const certificate = socket.getPeerCertificate();
    // A connection that is closed no longer knows: that is no answer to keep.
    if (!certificate?.valid_to) return undefined;
    peer = { id: spiffeIdWithDigest(certificate), until: Date.parse(certificate.valid_to) };
    peers.set(socket, peer);
  }
  return peer.until > Date.now() ? peer.id : undefined;
}
