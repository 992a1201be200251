import type { Append, Appended } from "../domain/append.ts";
import type { LogStore } from "../ports/log-store.ts";
import { AppendStore, type Fresh } from "./append-store.ts";
import type { Database } from "./database.ts";
import { ReadStore } from "./read-store.ts";

/** The log in PostgreSQL. */
export class PgLogStore extends ReadStore implements LogStore {
  readonly #appends: AppendStore;

  /** `onAppended` hears of every append of this process once it is durable. */
  constructor(database: Database, onAppended: (fresh: Fresh) => void) {
    super(database);
    this.#appends = new AppendStore(database, onAppended);
  }

  append(append: Append, signal?: AbortSignal): Promise<Appended> {
    return this.#appends.append(append, signal);
  }
}
