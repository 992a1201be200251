import { setTimeout as wait } from "node:timers/promises";
import { GanglionError } from "../../common/errors/ganglion-error.ts";
import type { Logger } from "../../common/log/create-logger.ts";
import type { Preview } from "../../gen/ganglion/session/v1/session_service.ts";
import { keepNewest } from "../live/keep-newest.ts";
import type { PreviewPlaces } from "../ports/preview-places.ts";
import { MAX_OPEN } from "./publication.ts";

const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 10_000;

/** Previews of one session at another replica. Ends when the harness's stream there ends; throws when it cannot go on. */
export type Subscribe = (address: string, sessionId: string, signal: AbortSignal) => AsyncIterable<Preview>;

/** What following previews elsewhere needs. */
export interface RemotePreviewsOptions {
  readonly places: Pick<PreviewPlaces, "find">;
  readonly subscribe: Subscribe;
  readonly address: () => string | undefined;
  /** Hands a preview to the watchers of this replica. */
  readonly deliver: (sessionId: string, preview: Preview) => void;
  readonly log: Logger;
}

interface Interest {
  watchers: number;
  /** Where the subscription of the moment goes; "" = there is none. */
  address: string;
  /** It was told again that they are to be had there. */
  isToldAgain: boolean;
  /** Ends what is under way: a subscription, or the wait for another try. */
  stop: AbortController;
}

/**
 * Follows the previews that harnesses stream to other replicas, for sessions that somebody here watches with previews
 * on and for no other. Previews are no more than a courtesy: whatever goes wrong costs some of them and nothing else.
 */
export class RemotePreviews {
  readonly #options: RemotePreviewsOptions;
  readonly #interests = new Map<string, Interest>();
  #isClosed = false;

  constructor(options: RemotePreviewsOptions) {
    this.#options = options;
  }

  /** Somebody watches a session with previews on; call what it returns when he leaves. */
  want(sessionId: string): () => void {
    let interest = this.#interests.get(sessionId);
    if (!interest) {
      interest = { watchers: 0, address: "", isToldAgain: false, stop: new AbortController() };
      this.#interests.set(sessionId, interest);
      void this.#follow(sessionId, interest, undefined);
    }
    interest.watchers += 1;
    const mine = interest;
    let isGone = false;
    return () => {
      if (isGone) return;
      isGone = true;
      mine.watchers -= 1;
      if (mine.watchers > 0) return;
      this.#interests.delete(sessionId);
      mine.stop.abort();
    };
  }

  /** A harness began to stream a session's previews to that address. */
  published(sessionId: string, address: string): void {
    const interest = this.#interests.get(sessionId);
    if (!interest) return;
    // The stream that is being followed may be about to end, and this be another one.
    if (interest.address === address) interest.isToldAgain = true;
    else this.#restart(sessionId, interest, address);
  }

  /** Some of what was said may not have been heard. */
  gap(): void {
    for (const [sessionId, interest] of this.#interests) {
      if (interest.address === "") this.#restart(sessionId, interest, undefined);
    }
  }

  /** Follows no more. */
  close(): void {
    this.#isClosed = true;
    for (const { stop } of this.#interests.values()) stop.abort();
    this.#interests.clear();
  }

  #restart(sessionId: string, interest: Interest, address: string | undefined): void {
    interest.stop.abort();
    interest.stop = new AbortController();
    void this.#follow(sessionId, interest, address);
  }

  // Until the stream there has ended well, or nobody knows where it is: then the next one is told of.
  async #follow(sessionId: string, interest: Interest, told: string | undefined): Promise<void> {
    const { signal } = interest.stop;
    let pauseMs = FIRST_PAUSE_MS;
    let next = told;
    while (!this.#isClosed && !signal.aborted) {
      try {
        const address = next ?? (await this.#options.places.find(sessionId));
        next = undefined;
        if (signal.aborted || address === undefined || address === this.#options.address()) return;
        interest.address = address;
        interest.isToldAgain = false;
        await this.#copy(sessionId, address, signal);
        if (!interest.isToldAgain) return;
        next = address;
        continue;
      } catch (error) {
        // Nobody streams there any more: whoever begins elsewhere tells of it.
        if (signal.aborted || GanglionError.is(error, "SESSION_NOT_FOUND")) return;
        this.#options.log.debug(
          { session_id: sessionId, err: error },
          "previews of another replica were lost",
        );
      } finally {
        if (!signal.aborted) interest.address = "";
      }
      await wait(pauseMs * (0.75 + Math.random() / 2), undefined, { signal, ref: false }).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    }
  }

  // Blocks that a broken subscription leaves open are void: what comes next begins them anew, or they are stored.
  async #copy(sessionId: string, address: string, signal: AbortSignal): Promise<void> {
    const open = new Set<string>();
    let isWhole = false;
    try {
      for await (const preview of this.#options.subscribe(address, sessionId, signal)) {
        if (signal.aborted) break;
        if (preview.message?.$case === "start") {
          open.add(preview.eventId);
          keepNewest(open, MAX_OPEN);
        }
        if (preview.message?.$case === "discarded") open.delete(preview.eventId);
        this.#options.deliver(sessionId, preview);
      }
      isWhole = !signal.aborted;
    } finally {
      if (!isWhole) {
        for (const eventId of open)
          this.#options.deliver(sessionId, { eventId, message: { $case: "discarded", value: {} } });
      }
    }
  }
}
