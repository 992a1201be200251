import type { Session } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";
import type { NewEvent, Status } from "../domain/append.ts";

/** A session that is to be made. */
export interface NewSession {
  readonly sessionId: string;
  readonly workspaceId: string;
  readonly request: RequestKey | null;
  readonly agentId: string;
  readonly agentVersion: number;
  readonly environmentId: string;
  readonly title: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly agentJson: Uint8Array;
  readonly environmentJson: Uint8Array;
  readonly vaultIds: readonly string[];
  /** Vault of the session's own; empty = none. */
  readonly ownVaultId: string;
  readonly repositories: readonly Repository[];
  /** What the session may cost; null = no limit. */
  readonly budgetCents: bigint | null;
  /** Who appends the events of the service itself, and who the client's. */
  readonly events: readonly FirstEvent[];
}

/** One of a new session's first events and who appends it. */
export interface FirstEvent {
  readonly event: NewEvent;
  readonly actor: { readonly role: number; readonly subject: string };
}

/** A caller's request id and a digest of what it asked for. */
export interface RequestKey {
  readonly method: string;
  readonly requestId: string;
  readonly digest: Uint8Array;
}

/** Which sessions a list shows; null = any. */
export interface ListSessionsQuery {
  readonly workspaceId: string;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly agentId: string | null;
  readonly agentVersion: number | null;
  readonly statuses: readonly Status[] | null;
  readonly includeArchived: boolean;
  readonly isAscending: boolean;
  readonly createdAtOrAfter: string | null;
  readonly createdBefore: string | null;
}

/** One page. */
export interface SessionPage {
  readonly sessions: Session[];
  readonly nextPageToken: string;
}

/** A change of settings and the event that says so; null = unchanged. */
export interface SessionChange {
  readonly title: string | null;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly agentJson: Uint8Array | null;
  /** null = no limit any more; undefined = unchanged. */
  readonly budgetCents: bigint | null | undefined;
  readonly event: NewEvent;
}

/** A session's record after a change; `head` is the position of an event that the change appended. */
export interface ChangedSession {
  readonly session: Session;
  readonly head: bigint | null;
}

/** Keeps sessions' records. Every query is limited to a workspace, or to none only for callers that may see all. */
export interface SessionStore {
  create(session: NewSession, signal?: AbortSignal): Promise<"created" | "request_id_taken">;
  get(sessionId: string, scope: string | null, signal?: AbortSignal): Promise<Session | undefined>;
  list(query: ListSessionsQuery, signal?: AbortSignal): Promise<SessionPage>;
  update(
    sessionId: string,
    scope: string | null,
    decide: (current: Session) => Promise<SessionChange | null>,
    signal?: AbortSignal,
  ): Promise<ChangedSession | undefined>;
  archive(
    sessionId: string,
    scope: string | null,
    terminated: NewEvent,
    signal?: AbortSignal,
  ): Promise<ChangedSession | undefined>;
  /** Ends a session whatever it is doing. */
  kill(
    sessionId: string,
    scope: string | null,
    terminated: NewEvent,
    signal?: AbortSignal,
  ): Promise<ChangedSession | undefined>;
  delete(sessionId: string, scope: string | null, signal?: AbortSignal): Promise<boolean>;
}
