import type { CallerIdentity } from "./caller-identity.ts";
import type { Network } from "./network.ts";

/** Where a call goes. */
export interface Route {
  network: Network;
  caller: CallerIdentity;
  to: string;
  service: string;
  path: string;
  isIdempotent: boolean;
}
