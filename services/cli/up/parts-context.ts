import type { MeshCertificates } from "./mesh-certificates.ts";
import type { MeshFiles } from "./mesh-files.ts";
import type { ServiceInstance } from "./mesh-services.ts";
import type { ServiceUsers } from "./service-users.ts";
import type { SupervisorOptions } from "./supervisor-options.ts";

/** What the parts are started with. */
export interface PartsContext {
  readonly options: SupervisorOptions;
  readonly services: readonly ServiceInstance[];
  readonly files: MeshFiles;
  readonly users: ServiceUsers;
  readonly ports: Record<string, number>;
  readonly certificates: MeshCertificates;
}
