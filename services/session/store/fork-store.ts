import { Event } from "../../gen/ganglion/types/v1/event.ts";
import { type Append, combineEffects, type NewEvent, NO_EFFECT, type RowEffect } from "../domain/append.ts";
import { forkBehindEnd, positionAheadOfLog } from "../domain/errors.ts";
import { type FoldedSettings, settingsOf, updateSettings } from "../domain/fold-settings.ts";
import { EFFECT_TYPES, effectOf, INPUT_EFFECT, INPUT_TYPES } from "../domain/row-effect.ts";
import type { Fork, ForkStore } from "../ports/fork-store.ts";
import type { SessionStore } from "../ports/session-store.ts";
import type { Connection, Database, Row } from "./database.ts";
import { encodeEffect } from "./event-codec.ts";
import * as sql from "./fork-statements.ts";
import { isUniqueViolation, mapPgError } from "./pg-error.ts";
import { claimRequestId } from "./request-ids.ts";
import { writeMetadata } from "./session-row.ts";
import { Slots } from "./slots.ts";

const PIECE_EVENTS = 2_000;
const PIECE_BYTES = 16 << 20;
// A long log takes a connection for some time: most of them must stay free for appends.
const AT_A_TIME = 2;
const MAX_WAIT_MS = 10_000;

/** What the copied events come to. */
interface Folded {
  readonly settings: FoldedSettings;
  readonly effect: RowEffect;
}

/** Forks in PostgreSQL: one transaction each, in pieces that keep within a statement's time. */
export class PgForkStore implements ForkStore {
  readonly #database: Database;
  readonly #sessions: Pick<SessionStore, "get">;
  readonly #actor: Append["actor"];
  readonly #slots = new Slots(AT_A_TIME, MAX_WAIT_MS);

  /** `actor` is this service, in the events that it appends itself. */
  constructor(database: Database, sessions: Pick<SessionStore, "get">, actor: Append["actor"]) {
    this.#database = database;
    this.#sessions = sessions;
    this.#actor = actor;
  }

  async fork(fork: Fork, signal?: AbortSignal) {
    const giveBack = await this.#slots.take(signal);
    try {
      const made = await this.#database.transaction(
        (connection) => this.#make(connection, fork, signal),
        signal,
      );
      if (!made) return undefined;
      const session = await this.#sessions.get(fork.sessionId, made.workspaceId, signal);
      return session && { session, isRunnable: made.isRunnable };
    } catch (error) {
      if (isUniqueViolation(error, "request_ids_pkey")) return "request_id_taken" as const;
      throw mapPgError(error);
    } finally {
      giveBack();
    }
  }

  async #make(
    connection: Connection,
    fork: Fork,
    signal: AbortSignal | undefined,
  ): Promise<{ workspaceId: string; isRunnable: boolean } | undefined> {
    const [source] = await connection.run(sql.GET_SOURCE, [fork.sourceId, fork.scope]);
    if (!source) return undefined;
    const workspaceId: string = source.workspace_id;
    const position = lastPosition(source, fork.position);
    const copied = await copy(connection, source, fork.sessionId, position, signal);
    const vaults = { vaultIds: source.vault_ids as string[], ownVaultId: source.own_vault_id as string };
    const forked = { ...copied.settings, ...vaults, workspaceId };
    await fork.bind(forked);

    const closing = fork.closing(forked, position);
    const own = [{ at: 1n, event: fork.created(source.body, position) }];
    closing.forEach((event, index) => {
      own.push({ at: position + BigInt(index + 1), event });
    });
    for (const { at, event } of own) {
      await connection.run(sql.ADD_EVENT, this.#eventValues(workspaceId, fork.sessionId, at, event));
    }
    const { settings, effect } = closing.reduce(foldRow, copied);
    const isRunnable = effect.runnable ?? false;
    await connection.run(sql.ADD_FORK, [
      ...[workspaceId, fork.sourceId, fork.sessionId],
      ...[position + BigInt(closing.length), effect.status ?? "idle", isRunnable, source.epoch],
      ...[
        effect.usage,
        effect.activeMs ?? 0n,
        effect.stopReason,
        effect.listCost,
        effect.isBudgetPaused ?? false,
      ],
      ...[
        settings.title,
        writeMetadata(settings.metadata),
        settings.agentJson,
        settings.budgetCents,
        position,
      ],
    ]);
    await connection.run(sql.SHARE_PAYLOADS, [workspaceId, fork.sourceId, fork.sessionId]);
    await connection.run(sql.NAME_PAYLOADS, [workspaceId, fork.sessionId]);
    await claimRequestId(connection, workspaceId, fork.request, fork.sessionId);
    return { workspaceId, isRunnable };
  }

  #eventValues(workspaceId: string, sessionId: string, at: bigint, event: NewEvent): unknown[] {
    return [
      ...[workspaceId, sessionId, at, event.id, event.type, event.threadId],
      ...[
        this.#actor.role,
        this.#actor.subject,
        event.traceparent,
        event.mayIgnore,
        event.body,
        event.digest,
      ],
    ];
  }
}

// What ended the source must not end the fork: it stops before that.
function lastPosition(source: Row, asked: bigint): bigint {
  const head: bigint = source.head;
  if (asked > head) throw positionAheadOfLog(head, "position");
  if (source.status !== "terminated") return asked === 0n ? head : asked;
  if (asked === head) throw forkBehindEnd(head - 1n);
  return asked === 0n ? head - 1n : asked;
}

async function copy(
  connection: Connection,
  source: Row,
  sessionId: string,
  position: bigint,
  signal: AbortSignal | undefined,
): Promise<Folded> {
  const first = Event.decode(source.body).body;
  if (first?.$case !== "ganglionSessionCreated") throw new Error("a log does not begin with its session");
  let folded: Folded = { settings: settingsOf(first.value), effect: NO_EFFECT };
  const ids = [source.workspace_id, source.session_id];
  for (let from = 1n; from < position; ) {
    signal?.throwIfAborted();
    const values = [...ids, from, position, PIECE_EVENTS, PIECE_BYTES];
    const [end] = await connection.run(sql.END_OF_PIECE, values);
    const to: bigint = end?.position;
    await connection.run(sql.COPY_PIECE, [...ids, sessionId, from, to]);
    const effects = await connection.run(sql.EFFECTS_OF_PIECE, [...ids, from, to, EFFECT_TYPES, INPUT_TYPES]);
    folded = effects.reduce(foldRow, folded);
    from = to;
  }
  return folded;
}

function foldRow({ settings, effect }: Folded, row: Row): Folded {
  if (row.body === null) return { settings, effect: combineEffects(effect, encodeEffect(INPUT_EFFECT)) };
  const { body } = Event.decode(row.body);
  return {
    settings: body?.$case === "sessionUpdated" ? updateSettings(settings, body.value) : settings,
    effect: combineEffects(effect, encodeEffect(effectOf(body))),
  };
}
