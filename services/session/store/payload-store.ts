import { newId } from "../../common/ids/new-id.ts";
import {
  idReused,
  payloadMismatch,
  payloadNotFound,
  sessionEnded,
  sessionNotFound,
  staleEpoch,
} from "../domain/errors.ts";
import type {
  KeptPayload,
  PayloadFacts,
  PayloadOwner,
  PayloadPutter,
  PayloadStore,
  Upload,
} from "../ports/payload-store.ts";
import type { Database, Row } from "./database.ts";
import * as sql from "./payload-statements.ts";
import { mapPgError, sqlState } from "./pg-error.ts";

const FOREIGN_KEY_VIOLATION = "23503";

/** Content beside the log in PostgreSQL. */
export class PgPayloadStore implements PayloadStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async begin(putter: PayloadPutter, facts: PayloadFacts, signal?: AbortSignal): Promise<Upload | "stored"> {
    const row = await this.#admit(putter, facts.payloadId, signal);
    if (row.payload_id !== null) {
      if (!isSame(facts, toFacts(row))) throw idReused(facts.payloadId);
      return "stored";
    }
    return { workspaceId: row.workspace_id, uploadId: newId("payl") };
  }

  async addPiece(upload: Upload, nth: number, data: Uint8Array, signal?: AbortSignal): Promise<void> {
    await this.#database.run(sql.ADD_PIECE, [upload.workspaceId, upload.uploadId, nth, data], signal);
  }

  async finish(
    putter: PayloadPutter,
    facts: PayloadFacts,
    upload: Upload,
    signal?: AbortSignal,
  ): Promise<"finished" | "stored"> {
    const { payloadId, sizeBytes, sha256, contentType } = facts;
    const lease = [putter.lease?.owner ?? null, putter.lease?.epoch ?? null];
    const content = [upload.uploadId, payloadId, sizeBytes, Buffer.from(sha256), contentType];
    const values = [putter.sessionId, upload.workspaceId, ...lease, ...content];
    const [row] = await this.#database.run(sql.FINISH_PAYLOAD, values, signal);
    if (row) return "finished";
    const state = await this.#admit(putter, payloadId, signal);
    if (state.payload_id === null) throw payloadMismatch(payloadId, "not all of the content was stored");
    if (!isSame(facts, toFacts(state))) throw idReused(payloadId);
    return "stored";
  }

  async discard({ workspaceId, uploadId }: Upload): Promise<void> {
    await this.#database.run(sql.DISCARD_UPLOAD, [workspaceId, uploadId]);
  }

  async find(
    { sessionId, scope }: PayloadOwner,
    payloadId: string,
    signal?: AbortSignal,
  ): Promise<{ facts: PayloadFacts; upload: Upload } | "none" | undefined> {
    const [row] = await this.#database.run(sql.FIND_PAYLOAD, [sessionId, scope, payloadId], signal);
    if (!row) return undefined;
    return row.payload_id === null ? "none" : { facts: toFacts(row), upload: toUpload(row) };
  }

  async readPiece(
    upload: Upload,
    nth: number,
    offset: number,
    signal?: AbortSignal,
  ): Promise<Buffer | undefined> {
    const values = [upload.workspaceId, upload.uploadId, nth, offset];
    const [row] = await this.#database.run(sql.READ_PIECE, values, signal);
    return row?.data;
  }

  async keep(
    { sessionId, scope }: PayloadOwner,
    payloadIds: readonly string[],
    signal?: AbortSignal,
  ): Promise<KeptPayload[]> {
    try {
      const rows = await this.#database.runRaw(sql.KEEP_PAYLOADS, [sessionId, scope, payloadIds], signal);
      return rows.map((row) => ({ ...toFacts(row), upload: toUpload(row) }));
    } catch (error) {
      // It was removed at this very moment.
      if (sqlState(error) === FOREIGN_KEY_VIOLATION) throw payloadNotFound(payloadIds[0] ?? "");
      throw mapPgError(error);
    }
  }

  async removeOld(): Promise<number> {
    const [row] = await this.#database.run(sql.REMOVE_OLD_PAYLOADS, []);
    return row?.removed ?? 0;
  }

  // The session's row, or the reason why it takes nothing from this putter.
  async #admit(putter: PayloadPutter, payloadId: string, signal?: AbortSignal): Promise<Row> {
    const { sessionId, scope, lease } = putter;
    const [row] = await this.#database.run(sql.PAYLOAD_STATE, [sessionId, scope, payloadId], signal);
    if (!row) throw sessionNotFound(sessionId);
    const isOver = row.status === "terminated";
    if (lease && (row.epoch !== lease.epoch || (row.owner !== lease.owner && !isOver)))
      throw staleEpoch(row.epoch);
    if (isOver) throw sessionEnded();
    return row;
  }
}

function toFacts(row: Row): PayloadFacts {
  const { payload_id: payloadId, size_bytes: sizeBytes, sha256, content_type: contentType } = row;
  return { payloadId, sizeBytes, sha256, contentType };
}

function toUpload(row: Row): Upload {
  return { workspaceId: row.workspace_id, uploadId: row.upload_id };
}

function isSame(one: PayloadFacts, other: PayloadFacts): boolean {
  return (
    one.sizeBytes === other.sizeBytes &&
    one.contentType === other.contentType &&
    Buffer.compare(one.sha256, other.sha256) === 0
  );
}
