import type { Logger } from "../../common/log/create-logger.ts";
import type { Preview } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Watcher } from "../live/watcher.ts";
import type { PreviewPlaces } from "../ports/preview-places.ts";
import { Publication } from "./publication.ts";

/** What the publications of a replica need. */
export interface PublicationsOptions {
  readonly places: PreviewPlaces;
  /** Address at which other replicas reach this one; undefined = they cannot. */
  readonly address: () => string | undefined;
  /** Hands a preview to the watchers of this replica. */
  readonly deliver: (sessionId: string, preview: Preview) => void;
  /** Tells the other replicas that a session's previews are to be had here. */
  readonly tell: (sessionId: string, address: string) => void;
  readonly log: Logger;
}

/** The sessions whose harness streams previews to this replica. */
export class Publications {
  readonly #options: PublicationsOptions;
  readonly #bySession = new Map<string, Publication>();
  readonly #writing = new Map<string, Promise<void>>();

  constructor(options: PublicationsOptions) {
    this.#options = options;
  }

  /** A harness's stream begins. The first text does not wait for the others to hear of it. */
  begin(sessionId: string, epoch: bigint): Publication {
    const subscribers = this.#bySession.get(sessionId)?.handOver();
    const deliver = (preview: Preview) => this.#options.deliver(sessionId, preview);
    const publication = new Publication(epoch, deliver, subscribers);
    this.#bySession.set(sessionId, publication);
    this.#inOrder(sessionId, () => this.#announce(sessionId, publication)).catch((error) =>
      this.#options.log.warn(
        { session_id: sessionId, err: error },
        "other replicas will not hear of previews",
      ),
    );
    return publication;
  }

  /**
   * It is over, well or not: the requests of a harness that was killed may end like those of one that is done. Blocks
   * that were under way and are not in the log are void.
   */
  async end(sessionId: string, publication: Publication): Promise<void> {
    const { openIds } = publication;
    const stored =
      openIds.length === 0 ? [] : await this.#options.places.stored(sessionId, openIds).catch(() => []);
    publication.end(new Set(stored));
    if (this.#bySession.get(sessionId) !== publication) return;
    this.#bySession.delete(sessionId);
    const address = this.#options.address();
    if (address === undefined) return;
    // What cannot be cleared is found wrong by whoever dials.
    const clear = () => this.#options.places.clear(sessionId, publication.epoch, address);
    this.#inOrder(sessionId, clear).catch(() => {});
  }

  /** Subscribes to a session's stream; undefined when none arrives here. */
  async subscribe(sessionId: string): Promise<{ subscriber: Watcher; leave: () => void } | undefined> {
    const openIds = this.#bySession.get(sessionId)?.openIds ?? [];
    const stored = openIds.length === 0 ? [] : await this.#options.places.stored(sessionId, openIds);
    // The harness may have gone meanwhile, or have begun anew.
    const publication = this.#bySession.get(sessionId);
    const subscriber = publication?.subscribe(new Set(stored));
    if (!publication || !subscriber) return undefined;
    const leave = () => {
      publication.unsubscribe(subscriber);
      // It may have gone over to a later stream.
      this.#bySession.get(sessionId)?.unsubscribe(subscriber);
    };
    return { subscriber, leave };
  }

  /** A watcher of this replica came to the live end: blocks that are under way here are told to him from their start. */
  async welcome(sessionId: string, watcher: Watcher): Promise<void> {
    const openIds = this.#bySession.get(sessionId)?.openIds ?? [];
    if (openIds.length === 0) return;
    // Without an answer he hears of the next block.
    const stored = await this.#options.places.stored(sessionId, openIds).catch(() => openIds);
    this.#bySession.get(sessionId)?.tellFromStart(watcher, new Set(stored));
  }

  async #announce(sessionId: string, publication: Publication): Promise<void> {
    const { places, address, tell } = this.#options;
    const here = address();
    if (here === undefined || this.#bySession.get(sessionId) !== publication) return;
    if (await places.note(sessionId, publication.epoch, here)) tell(sessionId, here);
  }

  // The end of one stream must not clear what the next one noted.
  #inOrder(sessionId: string, work: () => Promise<void>): Promise<void> {
    const done = (this.#writing.get(sessionId) ?? Promise.resolve()).then(work, work);
    this.#writing.set(sessionId, done);
    const forget = () => {
      if (this.#writing.get(sessionId) === done) this.#writing.delete(sessionId);
    };
    done.then(forget, forget);
    return done;
  }
}
