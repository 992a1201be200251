import type { Role } from "../../../../services/gen/ganglion/types/v1/access.ts";
import type { SimProcess } from "./virtual-time.ts";

/** Who calls, as the certificate would say. */
export interface CallerIdentity {
  process: SimProcess;
  spiffeId: string;
  role: Role;
  /** Clients only. */
  workspaceId: string | null;
}
