import type { CertificateHolder } from "./mesh-certificates.ts";
import type { ServiceInstance } from "./mesh-services.ts";
import type { ServiceUsers } from "./service-users.ts";

/** The workspace that every mesh has. */
export const DEFAULT_WORKSPACE = "wrkspc_default";

/** certificateHolders lists who has a certificate in a mesh on one machine. */
export function certificateHolders(
  users: ServiceUsers,
  services: readonly ServiceInstance[],
): CertificateHolder[] {
  const owned = (holder: CertificateHolder, owner: CertificateHolder["owner"]) =>
    owner ? { ...holder, owner } : holder;
  return [
    ...services.map(({ name, service, cn, user }) =>
      owned({ name, service, instance: name, cn }, users[user]),
    ),
    owned({ name: "postgres", service: "postgres", instance: "postgres", cn: "postgres" }, users.pg),
    owned({ name: "vault", service: "vault", instance: "vault", cn: "vault" }, users.vault),
    // The supervisor's own: it owns the schemas, and speaks to the services as an operator.
    { name: "migrations", service: "operator", instance: "migrations", cn: "ganglion_owner" },
    { name: "operator", service: "operator", instance: "local", cn: "operator" },
    { name: "client", service: "client", instance: clientInstance(DEFAULT_WORKSPACE, "local"), cn: "client" },
  ];
}

/** clientInstance names a client in its SPIFFE id: the gateway reads the workspace in it. */
export function clientInstance(workspaceId: string, name: string): string {
  return `${workspaceId}.${name}`;
}
