/** Remembers, beside the lease, which replica a session's holder streams its previews to. */
export interface PreviewPlaces {
  /** The holder of that epoch streams to this address; false when another epoch was there since. */
  note(sessionId: string, epoch: bigint, address: string): Promise<boolean>;
  /** It streams there no more. */
  clear(sessionId: string, epoch: bigint, address: string): Promise<void>;
  /** Where it streams to, as far as anybody knows. */
  find(sessionId: string): Promise<string | undefined>;
  /** Those of the blocks under way whose events are in the log already. */
  stored(sessionId: string, eventIds: readonly string[]): Promise<string[]>;
}
