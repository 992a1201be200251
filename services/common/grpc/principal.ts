import type { Metadata } from "@grpc/grpc-js";
import { ForwardedPrincipal, Role } from "../../gen/ganglion/types/v1/access.ts";
import { GanglionError } from "../errors/ganglion-error.ts";
import { parseSpiffeUri, type SpiffeId } from "../tls/spiffe-id.ts";

/** Metadata key with which the gateway says who is behind it. */
export const PRINCIPAL_KEY = "ganglion-principal-bin";

/** Who calls. */
export interface Principal {
  role: Role;
  /** SPIFFE id of the caller; empty for a caller with an API key. */
  spiffeId: string;
  /** Instance part of that id; empty for a caller with an API key. */
  instance: string;
  /** Workspace the caller is confined to; null = not confined (operators and services). */
  workspaceId: string | null;
  /** API key that was verified by the gateway. */
  keyId: string | null;
  /** SPIFFE id at the other end of the connection: the caller's own, or the gateway's. */
  peerSpiffeId: string;
  /** SHA-256 (hexadecimal) of the certificate at the other end of the connection; absent where none was read. */
  peerCertSha256?: string;
}

/** Finds out who calls from the verified peer (null = it showed no certificate) and the metadata. */
export type PrincipalResolver = (peer: SpiffeId | null, metadata: Metadata) => Principal | Promise<Principal>;

const ROLES = new Map<string, Role>([
  ["session", Role.ROLE_SESSION],
  ["harness", Role.ROLE_HARNESS],
  ["sandbox", Role.ROLE_SANDBOX],
  ["mcp-proxy", Role.ROLE_MCP_PROXY],
  ["gateway", Role.ROLE_GATEWAY],
  ["operator", Role.ROLE_OPERATOR],
]);

const ROLE_NAMES = new Map<Role, string>(
  Object.entries(Role).map(([name, role]) => [role, name.replace("ROLE_", "").toLowerCase()]),
);

/** Short name of a role for logs and messages. */
export function roleName(role: Role): string {
  return ROLE_NAMES.get(role) ?? "unknown";
}

/**
 * The resolver of every service but the gateway: the role is that of the certificate, or, when the
 * peer is the gateway and says so, that of the operator or client behind it.
 */
export function resolveMeshPrincipal(peer: SpiffeId | null, metadata: Metadata): Principal {
  const direct = principalOfPeer(peer);
  const forwarded = metadata.get(PRINCIPAL_KEY);
  if (forwarded.length === 0) return direct;
  if (direct.role !== Role.ROLE_GATEWAY) {
    throw denied("PRINCIPAL_NOT_ACCEPTED", "only the gateway may speak for others");
  }
  const [value] = forwarded;
  if (forwarded.length !== 1 || !Buffer.isBuffer(value)) {
    throw denied("PRINCIPAL_NOT_ACCEPTED", "the forwarded principal is not exactly one value");
  }
  return forwardedPrincipal(value, direct);
}

/** The principal of a direct peer; a client certificate counts behind the gateway only. */
export function principalOfPeer(peer: SpiffeId | null): Principal {
  if (!peer) {
    throw new GanglionError({
      code: "UNAUTHENTICATED",
      reason: "PEER_IDENTITY_INVALID",
      message: "the peer shows no identity of this mesh",
    });
  }
  const role = ROLES.get(peer.service);
  if (role === undefined)
    throw denied("ROLE_NOT_ALLOWED", `a ${peer.service} certificate may call nothing here`);
  return {
    role,
    spiffeId: peer.uri,
    instance: peer.instance,
    workspaceId: null,
    keyId: null,
    peerSpiffeId: peer.uri,
    ...(peer.certSha256 === undefined ? {} : { peerCertSha256: peer.certSha256 }),
  };
}

/** The metadata value with which the gateway forwards a principal. */
export function encodeForwardedPrincipal(principal: Principal): Buffer {
  return Buffer.from(
    ForwardedPrincipal.encode({
      role: principal.role,
      workspaceId: principal.workspaceId ?? "",
      subject: principal.keyId ?? principal.spiffeId,
    }).finish(),
  );
}

function forwardedPrincipal(bytes: Buffer, gateway: Principal): Principal {
  let said: ForwardedPrincipal;
  try {
    said = ForwardedPrincipal.decode(bytes);
  } catch {
    throw denied("PRINCIPAL_NOT_ACCEPTED", "the forwarded principal cannot be read");
  }
  const isClient = said.role === Role.ROLE_CLIENT;
  const isOperator = said.role === Role.ROLE_OPERATOR;
  const fits = (isClient && said.workspaceId !== "") || (isOperator && said.workspaceId === "");
  if (!fits || said.subject === "") {
    throw denied("PRINCIPAL_NOT_ACCEPTED", "the forwarded principal is not complete");
  }
  const id = parseSpiffeUri(said.subject);
  return {
    role: said.role,
    spiffeId: id?.uri ?? "",
    instance: id?.instance ?? "",
    workspaceId: isClient ? said.workspaceId : null,
    keyId: id ? null : said.subject,
    peerSpiffeId: gateway.spiffeId,
    ...(gateway.peerCertSha256 === undefined ? {} : { peerCertSha256: gateway.peerCertSha256 }),
  };
}

function denied(reason: string, message: string): GanglionError {
  return new GanglionError({ code: "PERMISSION_DENIED", reason, message });
}
