import type { PeerCertificate } from "node:tls";
import type { Metadata, ServerErrorResponse } from "@grpc/grpc-js";

/** What grpc-js tells of a connection's security. */
export interface AuthContext {
  sslPeerCertificate?: PeerCertificate;
}

/** The part of a grpc-js server call, of any kind, that we use. */
export interface TransportCall {
  cancelled: boolean;
  readonly metadata: Metadata;
  request?: unknown;
  getPeer(): string;
  getDeadline(): Date | number;
  getAuthContext(): AuthContext;
  on(event: "cancelled", listener: () => void): unknown;
  emit(event: "error", error: unknown): boolean;
  end(): unknown;
  write(chunk: Buffer, written: (error?: Error | null) => void): boolean;
}

/** The callback of a unary or client-streaming call. */
export type TransportCallback = (error: ServerErrorResponse | null, response?: Buffer) => void;
