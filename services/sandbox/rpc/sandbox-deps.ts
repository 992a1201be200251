import type { Outcome } from "../domain/execution-result.ts";
import type { Executions } from "../domain/executions.ts";
import type { HandResources } from "../domain/hand-driver.ts";
import type { HandRegistry } from "../domain/hand-registry.ts";
import type { LeaseGuard } from "../domain/lease-guard.ts";

/** What every hand of this host is and has. */
export type HandOffer = {
  driver: string;
  /** SPIFFE id of this service. */
  host: string;
  tools: readonly string[];
  /** Fields of Resources that this host cannot enforce. */
  unenforcedLimits: readonly string[];
};

/** What the handlers of SandboxService work with. */
export type SandboxDeps = {
  leases: LeaseGuard;
  hands: HandRegistry;
  executions: Executions;
  metrics: { countExecution: (outcome: Outcome) => void };
  offer: () => HandOffer;
  /** What a hand gets when its request names nothing. */
  defaultResources: HandResources;
};
