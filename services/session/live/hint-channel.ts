import pg from "pg";
import { crashPoint } from "../../common/crash/crash-point.ts";
import type { Logger } from "../../common/log/create-logger.ts";
import { type ConnectionSource, connectionConfig } from "../store/database.ts";
import { OtherReplicas } from "./other-replicas.ts";

const CHANNEL = "ganglion_session";
// The limit is 7,999 bytes; ids are ASCII. [M27]
const MAX_PAYLOAD = 7_500;
const MAX_PENDING = 10_000;
const HEARTBEAT_MS = 5_000;
const QUERY_TIMEOUT_MS = 5_000;

/** Whether there is something to lease: no, at once, or only if the one who holds the session is dead. */
export type Runnable = "no" | "free" | "held";

/** That something happened to a session. Only a hint: whoever hears it reads by position. */
export interface Hint {
  readonly sessionId: string;
  readonly runnable: Runnable;
}

const NOTIFY = `SELECT pg_notify('${CHANNEL}', $1)`;
const MARKS: Readonly<Record<Runnable, string>> = { no: "-", free: "+", held: "~" };
const PUBLISHED = "@";
/** Said by whoever listens, as its heartbeat. */
const HERE = "!";
/** Said to those who may have been told nothing for a while: they look for themselves. */
const LOOK = "*";
const BY_MARK = new Map((Object.keys(MARKS) as Runnable[]).map((name) => [MARKS[name], name]));

/** Who hears hints of every process, and when some may have been missed. */
export interface HintListener {
  onHint(hint: Hint): void;
  /** A session's previews are to be had at that replica. */
  onPublished(sessionId: string, address: string): void;
  onGap(): void;
}

/**
 * The one side connection for NOTIFY and LISTEN. Never in an append's own transaction: NOTIFY inside a commit
 * serialises all commits. Hints are coalesced while one is on its way, and not sent where no other replica listens: each
 * would cost its append's caller a statement's time. A connection that was cut silently is found by its heartbeat within
 * 10 s and made anew. [B048, B050]
 */
export class HintChannel {
  readonly #source: ConnectionSource;
  readonly #listener: HintListener;
  readonly #log: Logger;
  readonly #pending = new Map<string, Runnable>();
  readonly #published = new Map<string, string>();
  readonly #others = new OtherReplicas(2 * HEARTBEAT_MS);
  #says: string[] = [];
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
  send({ sessionId, runnable }: Hint): void {
    if (this.#isAlone) return;
    const waiting = this.#pending.get(sessionId);
    if (this.#pending.size >= MAX_PENDING && waiting === undefined) return;
    this.#pending.set(sessionId, waiting === undefined ? runnable : stronger(waiting, runnable));
    void this.#flush();
  }

  /** Tells every other process where a session's previews are to be had. */
  sendPublished(sessionId: string, address: string): void {
    if (this.#isAlone || this.#published.size >= MAX_PENDING) return;
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

  // While it has no connection it cannot know.
  get #isAlone(): boolean {
    return this.#client !== undefined && !this.#others.mayListen;
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
    client.on("notification", ({ processId, payload }) => {
      // What this process said itself comes back as well; it has acted on it already.
      if (processId !== (client as unknown as { processID?: number }).processID) this.#receive(payload ?? "");
    });
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
    this.#others.assume();
    this.#says = [HERE];
    this.#beat(client);
    // Whatever was said while nobody listened is found by position.
    this.#listener.onGap();
    void this.#flush();
  }

  #beat(client: pg.Client): void {
    this.#timer = setTimeout(() => {
      client.query(NOTIFY, [HERE]).then(
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
      while (this.#client && this.#says.length + this.#pending.size + this.#published.size > 0) {
        crashPoint("pg.hint.before");
        await this.#client.query({ name: "hint", text: NOTIFY, values: [this.#take()] });
        crashPoint("pg.hint.after");
      }
    } catch {
      // Lost hints cost their readers the wait for the next look, nothing else.
    } finally {
      this.#isSending = false;
    }
  }

  #take(): string {
    let payload = this.#says.map((word) => `${word}\n`).join("");
    this.#says = [];
    for (const [sessionId, runnable] of this.#pending) {
      const line = `${MARKS[runnable]}${sessionId}\n`;
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

  // One that was not reckoned with has been told nothing since it began to listen.
  #welcome(): void {
    if (this.#others.heard() === "expected") return;
    this.#says.push(LOOK);
    void this.#flush();
  }

  #receive(payload: string): void {
    for (const line of payload.split("\n")) {
      const runnable = BY_MARK.get(line[0] ?? "");
      const isPublished = line.startsWith(PUBLISHED);
      // Not by its heartbeat alone: one of an older version has none that is heard.
      if (line === HERE || runnable || isPublished) this.#welcome();
      if (line === LOOK) this.#listener.onGap();
      if (isPublished) {
        const [sessionId = "", address = ""] = line.slice(1).split(" ");
        if (address !== "") this.#listener.onPublished(sessionId, address);
        continue;
      }
      if (runnable) this.#listener.onHint({ sessionId: line.slice(1), runnable });
    }
  }
}

function stronger(a: Runnable, b: Runnable): Runnable {
  return a === "free" || b === "free" ? "free" : b === "no" ? a : b;
}
