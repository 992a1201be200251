import type { Session } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";
import type { NewEvent } from "../domain/append.ts";
import type { RequestKey } from "./session-store.ts";

/** What a session is by its log up to a position. */
export interface ForkedSettings {
  readonly workspaceId: string;
  readonly title: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly agentJson: Uint8Array;
  readonly environmentJson: Uint8Array;
  readonly repositories: readonly Repository[];
  readonly vaultIds: readonly string[];
  readonly ownVaultId: string;
  readonly budgetCents: bigint | null;
}

/** A fork that is to be made. */
export interface Fork {
  readonly sessionId: string;
  readonly sourceId: string;
  /** Workspace that the caller is confined to; null = any. */
  readonly scope: string | null;
  /** Last position to copy; 0 = the newest that can be. */
  readonly position: bigint;
  readonly request: RequestKey | null;
  /** Binds the vaults, once the settings are known and before anybody can see the fork. */
  bind(settings: ForkedSettings): Promise<void>;
  /** The first event, made from the source's. */
  created(first: Uint8Array, position: bigint): NewEvent;
  /** What follows the copied events. */
  closing(settings: ForkedSettings, position: bigint): readonly NewEvent[];
}

/** Makes sessions from other sessions' logs. */
export interface ForkStore {
  /** Undefined when there is no such source. */
  fork(
    fork: Fork,
    signal?: AbortSignal,
  ): Promise<{ session: Session; isRunnable: boolean } | "request_id_taken" | undefined>;
}
