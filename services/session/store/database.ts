import pg from "pg";
import { crashPoint } from "../../common/crash/crash-point.ts";
import { databaseUnavailable, mapPgError, sqlState } from "./pg-error.ts";
import { Slots } from "./slots.ts";

/** A statement by name: prepared once on each connection. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** One row as the driver gives it: int8 as bigint, times as text. */
// biome-ignore lint/suspicious/noExplicitAny: columns differ with each statement; each store maps its own
export type Row = Record<string, any>;

/** Runs statements on one connection. Errors are the driver's own. */
export interface Connection {
  run(statement: Statement, values: readonly unknown[]): Promise<Row[]>;
}

/** What connects: read anew for each connection, because certificates are renewed. */
export type ConnectionSource = () => pg.ClientConfig;

const STATEMENT_TIMEOUT_MS = 10_000;
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") => {
    if (oid === 20) return BigInt;
    // Date has no microseconds, a page token needs them. [M30, B056]
    if (oid === 1184) return String;
    return pg.types.getTypeParser(oid, format as "text");
  }) as pg.CustomTypesConfig["getTypeParser"],
};

/** What every connection of the service has in common. */
export function connectionConfig(source: ConnectionSource): pg.ClientConfig {
  return {
    ...source(),
    types,
    application_name: "ganglion-session",
    connectionTimeoutMillis: 5_000,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
    // A connection that was silently cut never answers.
    query_timeout: STATEMENT_TIMEOUT_MS + 5_000,
    keepAlive: true,
    options: "-c timezone=UTC -c search_path=pg_catalog",
  };
}

/** The service's connections. Nobody needs two at a time, and nobody waits for one beyond its deadline. */
export class Database {
  readonly #pool: pg.Pool;
  readonly #slots: Slots;
  readonly source: ConnectionSource;

  constructor(source: ConnectionSource, size: number, maxWaitMs = 5_000) {
    this.source = source;
    class Client extends pg.Client {
      constructor() {
        super(connectionConfig(source));
        // A backend that is terminated tells its client by an event, also between two queries. [B052, B053]
        this.on("error", () => {});
      }
    }
    this.#pool = new pg.Pool({
      Client: Client as unknown as typeof pg.Client,
      max: size,
      idleTimeoutMillis: 30_000,
    } as pg.PoolConfig);
    this.#pool.on("error", () => {});
    this.#slots = new Slots(size, maxWaitMs);
  }

  /** Runs one statement; what fails is a GanglionError. */
  async run(statement: Statement, values: readonly unknown[], signal?: AbortSignal): Promise<Row[]> {
    try {
      return await this.runRaw(statement, values, signal);
    } catch (error) {
      throw mapPgError(error);
    }
  }

  /** Runs one statement; what fails is the driver's error, for callers that look at its SQLSTATE. */
  async runRaw(statement: Statement, values: readonly unknown[], signal?: AbortSignal): Promise<Row[]> {
    return this.#withClient(signal, (client) => query(client, statement, values));
  }

  /** Runs statements in one transaction: all or nothing. Errors thrown inside come out as they are. */
  async transaction<T>(work: (connection: Connection) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#withClient(signal, async (client) => {
      await client.query("BEGIN");
      try {
        const result = await work({ run: (statement, values) => query(client, statement, values) });
        crashPoint("pg.commit.before");
        await client.query("COMMIT");
        crashPoint("pg.commit.after");
        return result;
      } catch (error) {
        await client.query("ROLLBACK");
        throw error;
      }
    });
  }

  /** Whether a statement gets through now. */
  async isReachable(): Promise<boolean> {
    try {
      await this.runRaw({ name: "ping", text: "SELECT 1 AS one" }, []);
      return true;
    } catch {
      return false;
    }
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #withClient<T>(
    signal: AbortSignal | undefined,
    work: (client: pg.PoolClient) => Promise<T>,
  ): Promise<T> {
    const giveBack = await this.#slots.take(signal);
    try {
      const client = await this.#pool.connect();
      let isBroken = true;
      try {
        const result = await work(client);
        isBroken = false;
        return result;
      } catch (error) {
        // After an error of the statement itself the connection is good; after any other it is not to be trusted.
        isBroken = !isOfStatement(error);
        throw error;
      } finally {
        client.release(isBroken);
      }
    } finally {
      giveBack();
    }
  }
}

function isOfStatement(error: unknown): boolean {
  const state = sqlState(error);
  if (state) return !/^(08|57P)/.test(state);
  return error instanceof Error && error.name === "GanglionError";
}

async function query(
  client: pg.ClientBase,
  statement: Statement,
  values: readonly unknown[],
): Promise<Row[]> {
  crashPoint("pg", statement.name, "before");
  const result = await client.query({
    name: statement.name,
    text: statement.text,
    values: values as unknown[],
  });
  crashPoint("pg", statement.name, "after");
  if (!result) throw databaseUnavailable("no answer");
  return result.rows;
}
