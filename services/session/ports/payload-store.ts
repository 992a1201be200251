/** What is said of content: by its uploader, by an event that names it, by the store. */
export interface PayloadFacts {
  readonly payloadId: string;
  readonly sizeBytes: bigint;
  readonly sha256: Uint8Array;
  readonly contentType: string;
}

/** Who puts or reads, and where. */
export interface PayloadOwner {
  readonly sessionId: string;
  /** Workspace that the caller is confined to; null = any. */
  readonly scope: string | null;
}

/** Who puts: a harness under its lease, others without one. */
export interface PayloadPutter extends PayloadOwner {
  readonly lease: { readonly owner: string; readonly epoch: bigint } | null;
}

/** An upload in the making. */
export interface Upload {
  readonly workspaceId: string;
  readonly uploadId: string;
}

/** Bytes of a piece; only the last one of a payload is shorter. */
export const PIECE_BYTES = 1 << 20;

/** Keeps content beside the log. Nothing of an upload is visible before it is finished. */
export interface PayloadStore {
  /** Begins an upload, or says that the session has the payload already; throws when the putter may not. */
  begin(putter: PayloadPutter, facts: PayloadFacts, signal?: AbortSignal): Promise<Upload | "stored">;
  /** Stores the piece with that number, from 0. */
  addPiece(upload: Upload, nth: number, data: Uint8Array, signal?: AbortSignal): Promise<void>;
  /** Makes an upload the payload; "stored" when another upload of the same content was first. */
  finish(
    putter: PayloadPutter,
    facts: PayloadFacts,
    upload: Upload,
    signal?: AbortSignal,
  ): Promise<"finished" | "stored">;
  /** Removes the pieces of an upload that did not become a payload. */
  discard(upload: Upload): Promise<void>;
  /** A payload; "none" when the session has no such one, undefined when there is no such session. */
  find(
    owner: PayloadOwner,
    payloadId: string,
    signal?: AbortSignal,
  ): Promise<{ facts: PayloadFacts; upload: Upload } | "none" | undefined>;
  /** A piece of a payload from an offset in it on; undefined when it is gone. */
  readPiece(upload: Upload, nth: number, offset: number, signal?: AbortSignal): Promise<Buffer | undefined>;
  /** Those of the payloads that the session has; from now on they stay as long as the session. */
  keep(owner: PayloadOwner, payloadIds: readonly string[], signal?: AbortSignal): Promise<KeptPayload[]>;
  /** Removes some content older than a day that no event names; says how much. */
  removeOld(): Promise<number>;
}

/** A payload that an event is about to name. */
export interface KeptPayload extends PayloadFacts {
  readonly upload: Upload;
}
