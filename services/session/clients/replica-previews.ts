import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { createClient, type MeshClient } from "../../common/grpc/create-client.ts";
import type { TlsBundle } from "../../common/tls/tls-bundle.ts";
import { type Preview, SessionServiceService } from "../../gen/ganglion/session/v1/session_service.ts";

// A connection that nobody uses is kept this long: the next turn is often near.
const LINGER_MS = 30_000;
const STAND_MS = 5_000;

interface Connection {
  readonly client: Pick<MeshClient<typeof SessionServiceService>, "subscribePreviews" | "close">;
  users: number;
  timer: NodeJS.Timeout | undefined;
}

/** Connections to other replicas, made for subscriptions alone; each accepts a session service's certificate only. */
export class ReplicaPreviews {
  readonly #tls: TlsBundle;
  readonly #connections = new Map<string, Connection>();

  constructor(tls: TlsBundle) {
    this.#tls = tls;
  }

  /** Previews of a session at the replica with that address. */
  async *subscribe(address: string, sessionId: string, signal: AbortSignal): AsyncGenerator<Preview> {
    const connection = this.#take(address);
    // A replica that vanished without a word must not hold the subscription for ever.
    const stands = new AbortController();
    const timer = setTimeout(() => stands.abort(unreachable(address)), STAND_MS);
    timer.unref();
    try {
      const answers = connection.client.subscribePreviews(
        { sessionId },
        { signal: AbortSignal.any([signal, stands.signal]) },
      );
      for await (const { preview } of answers) {
        clearTimeout(timer);
        if (preview) yield preview;
      }
    } finally {
      clearTimeout(timer);
      this.#giveBack(address, connection);
    }
  }

  /** Ends all connections. */
  close(): void {
    for (const { client, timer } of this.#connections.values()) {
      clearTimeout(timer);
      client.close();
    }
    this.#connections.clear();
  }

  #take(address: string): Connection {
    const known = this.#connections.get(address);
    const connection = known ?? { client: this.#dial(address), users: 0, timer: undefined };
    clearTimeout(connection.timer);
    connection.users += 1;
    this.#connections.set(address, connection);
    return connection;
  }

  #giveBack(address: string, connection: Connection): void {
    connection.users -= 1;
    if (connection.users > 0) return;
    connection.timer = setTimeout(() => {
      this.#connections.delete(address);
      connection.client.close();
    }, LINGER_MS);
    connection.timer.unref();
  }

  #dial(address: string) {
    // Pings find a replica that is gone without a word.
    return createClient(SessionServiceService, address, this.#tls, "session", {
      image: null,
      keepaliveMs: 30_000,
    });
  }
}

function unreachable(address: string): GanglionError {
  return new GanglionError({
    code: "UNAVAILABLE",
    reason: "UNREACHABLE",
    message: `the replica at ${address} did not answer`,
  });
}
