import type { Event } from "../../gen/ganglion/types/v1/event.ts";
import type { Append } from "../domain/append.ts";
import type { EventRules } from "../domain/events/event-rules.ts";
import type { PriceList } from "../domain/price-list.ts";
import type { Feeds } from "../live/feeds.ts";
import type { RunnableMonitor } from "../live/runnable-monitor.ts";
import type { CheckpointStore } from "../ports/checkpoint-store.ts";
import type { ForkStore } from "../ports/fork-store.ts";
import type { LeaseStore } from "../ports/lease-store.ts";
import type { LogStore } from "../ports/log-store.ts";
import type { PayloadStore } from "../ports/payload-store.ts";
import type {
  AgentStore,
  ApiKeyStore,
  EnvironmentStore,
  RequestIds,
  Workspaces,
} from "../ports/registry-stores.ts";
import type { SessionStore } from "../ports/session-store.ts";
import type { VaultBindings } from "../ports/vault-bindings.ts";
import type { Publications } from "../previews/publications.ts";
import type { RemotePreviews } from "../previews/remote-previews.ts";

/** What the handlers work with. */
export interface Deps {
  readonly log: LogStore;
  readonly sessions: SessionStore;
  readonly forks: ForkStore;
  readonly leases: LeaseStore;
  readonly payloads: PayloadStore;
  readonly checkpoints: CheckpointStore;
  readonly agents: AgentStore;
  readonly environments: EnvironmentStore;
  readonly apiKeys: ApiKeyStore;
  readonly workspaces: Workspaces;
  readonly requestIds: RequestIds;
  readonly bindings: VaultBindings;
  readonly feeds: Feeds;
  /** Sessions whose previews arrive at this replica, and those of others that somebody here watches. */
  readonly publications: Publications;
  readonly remotePreviews: RemotePreviews;
  readonly runnable: RunnableMonitor;
  readonly rules: EventRules;
  /** What models cost. */
  readonly prices: PriceList;
  /** This service, in the events that it appends itself. */
  readonly actor: Append["actor"];
  readonly heartbeatTtlMs: number;
  /** Longest silence of a stream. */
  readonly quietMs: number;
  /**
   * Says to watchers and harnesses, here and elsewhere, that a session changed; `event` is all that was appended, where that
   * is at hand.
   */
  announce(sessionId: string, isRunnable: boolean, event?: Event): void;
}
