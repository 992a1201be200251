import pg from "pg";
import { crashPoint } from "../../common/crash/crash-point.ts";
import type { Logger } from "../../common/log/create-logger.ts";
import { type ConnectionSource, connectionConfig } from "../store/database.ts";

const CHANNEL = "ganglion_session";
// The limit is 7,999 bytes; ids are ASCII. [M27]
const MAX_PAYLOAD = 7_500;
const PUBLISHED = "@";
const MAX_PENDING = 10_000;
const HEARTBEAT_MS = 5_000;
const QUERY_TIMEOUT_MS = 5_000;

/** That something happened to a session. Only a hint: whoever hears it reads by position. */
export interface Hint {
  readonly sessionId: string;
  readonly isRunnable: boolean;
}

/** Who hears hints of every process, and when some may have been missed. */
export interface HintListener {
  onHint(hint: Hint): void;
  /** A session's previews are to be had at that replica. */
  onPublished(sessionId: string, address: string): void;
  onGap(): void;
}

/**
 * The one side connection for NOTIFY and LISTEN. Never in an append's own transaction: NOTIFY inside a commit
 * serialises all commits. Hints are coalesced while one is on its way. A connection that was cut silently is found
 * by its heartbeat within 10 s and made anew. [B048, B050]
 */
export class HintChannel {
  readonly #source: ConnectionSource;
  readonly #listener: HintListener;
  readonly #log: Logger;
  readonly #pending = new Map<string, boolean>();
  readonly #published = new Map<string, string>();
  #client: pg.Client | undefined;
  #isSending = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(source: ConnectionSource, listener: HintListener, log: Logger) {
    this.#source = source;
    this.#listener = listener;
    this.#log = log;
  }

  /** Starts to connect; returns at once. */
  start(): void {
    void this.#connect();
  }

  /** True while hints of other processes arrive. */
  get isConnected(): boolean {
    return this.#client !== undefined;
  }

  /** Tells every process, this one excepted (its callers know already). */
  send({ sessionId, isRunnable }: Hint): void {
    if (this.#pending.size >= MAX_PENDING && !this.#pending.has(sessionId)) return;
    this.#pending.set(sessionId, isRunnable || this.#pending.get(sessionId) === true);
    void this.#flush();
  }

  /** Tells every other process where a session's previews are to be had. */
  sendPublished(sessionId: string, address: string): void {
    if (this.#published.size >= MAX_PENDING) return;
    this.#published.set(sessionId, address);
    void this.#flush();
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => {});
  }

  async #connect(): Promise<void> {
    if (this.#isClosed) return;
    const client = new pg.Client({
      ...connectionConfig(this.#source),
      query_timeout: QUERY_TIMEOUT_MS,
      options: "-c timezone=UTC -c search_path=pg_catalog -c synchronous_commit=off",
    });
    client.on("error", () => this.#lose(client));
    client.on("end", () => this.#lose(client));
    client.on("notification", ({ payload }) => this.#receive(payload ?? ""));
    try {
      await client.connect();
      await client.query(`LISTEN ${CHANNEL}`);
    } catch {
      client.end().catch(() => {});
      this.#retry();
      return;
    }
    if (this.#isClosed) {
      client.end().catch(() => {});
      return;
    }
    this.#client = client;
    this.#beat(client);
    // Whatever was said while nobody listened is found by position.
    this.#listener.onGap();
    void this.#flush();
  }

  #beat(client: pg.Client): void {
    this.#timer = setTimeout(() => {
      client.query("SELECT 1").then(
        () => this.#client === client && this.#beat(client),
        () => this.#lose(client),
      );
    }, HEARTBEAT_MS);
  }

  #lose(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    clearTimeout(this.#timer);
    this.#log.warn("lost the connection for hints; reading by position meanwhile");
    // A black hole answers no goodbye either.
    (client as unknown as { connection?: { stream?: { destroy(): void } } }).connection?.stream?.destroy();
    this.#retry();
  }

  #retry(): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => void this.#connect(), 100 + Math.random() * 900);
  }

  async #flush(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      while (this.#client && this.#pending.size + this.#published.size > 0) {
        crashPoint("pg.hint.before");
        await this.#client.query({
          name: "hint",
          text: `SELECT pg_notify('${CHANNEL}', $1)`,
          values: [this.#take()],
        });
        crashPoint("pg.hint.after");
      }
    } catch {
      // Lost hints cost their readers the wait for the next look, nothing else.
    } finally {
      this.#isSending = false;
    }
  }

  #take(): string {
    let payload = "";
    for (const [sessionId, isRunnable] of this.#pending) {
      const line = `${isRunnable ? "+" : "-"}${sessionId}\n`;
      if (payload.length + line.length > MAX_PAYLOAD) break;
      payload += line;
      this.#pending.delete(sessionId);
    }
    for (const [sessionId, address] of this.#published) {
      const line = `${PUBLISHED}${sessionId} ${address}\n`;
      if (payload.length + line.length > MAX_PAYLOAD) break;
      payload += line;
      this.#published.delete(sessionId);
    }
    return payload;
  }

  #receive(payload: string): void {
    for (const line of payload.split("\n")) {
      if (line.startsWith(PUBLISHED)) {
        const [sessionId = "", address = ""] = line.slice(1).split(" ");
        if (address !== "") this.#listener.onPublished(sessionId, address);
        continue;
      }
      if (line.length > 1) this.#listener.onHint({ sessionId: line.slice(1), isRunnable: line[0] === "+" });
    }
  }
}
