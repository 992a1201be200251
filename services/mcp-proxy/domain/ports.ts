import type { AccessRow, CredentialRow } from "./access.ts";
import type { CredentialKind } from "./credential-config.ts";
import type { NewRecord, WriterColumns } from "./new-record.ts";
import type { PinnedDefinition, ToolPin } from "./tool-pins.ts";

/** What a decision that lets a call through is bound to: checked again in the transaction that writes it. */
export interface Guard {
  tokenHash: Buffer;
  tokenMac: Buffer;
  bindingMac: Buffer;
}

/** A record as a caller of the ledger gives it; the ledger adds who writes. */
export type LedgerRecord = Omit<NewRecord, keyof WriterColumns>;

/** The claim of a tool call's key in the journal. */
export interface CallClaim {
  sessionId: string;
  callKey: string;
  epoch: bigint;
  requestDigest: Buffer;
  requestId: string;
}

/** How a tool call ended; `result` is the encoded Call. null = it certainly did not run: the key is free again. */
export interface CallEnd {
  sessionId: string;
  callKey: string;
  requestId: string;
  result: Buffer | null;
}

/** The audit log as a call sees it. Every method resolves when its record is durable, or rejects within 2 s. */
export interface Ledger {
  /**
   * Writes a record. Resolves with the reason why the guard failed, when it did; then nothing was written. Dispatch and
   * outcome of a request that was closed already are not written: that rejects.
   */
  write(record: LedgerRecord, guard?: Guard): Promise<string | undefined>;
  /**
   * Writes a decision and, when its guard holds, the dispatch behind it, in one transaction: both are durable or neither.
   * Resolves as write() does.
   */
  writeTogether(decision: LedgerRecord, guard: Guard, dispatch: LedgerRecord): Promise<string | undefined>;
  /** Writes a decision and claims the call's key in the same transaction; false when the key is known already. */
  writeAndClaim(
    record: LedgerRecord,
    guard: Guard,
    claim: CallClaim,
  ): Promise<{ refusal?: string; isClaimed: boolean }>;
  /** The same, and when the key is claimed the dispatch is written behind the decision: the call is under way. */
  writeClaimAndDispatch(
    record: LedgerRecord,
    guard: Guard,
    claim: CallClaim,
    dispatch: { record: LedgerRecord; isRepeatable: boolean },
  ): Promise<{ refusal?: string; isClaimed: boolean }>;
  /** Writes a dispatch if this request still holds the claim; false when it does not. */
  writeDispatch(
    record: LedgerRecord,
    call: { sessionId: string; callKey: string; isRepeatable: boolean },
  ): Promise<boolean>;
  /** Writes an outcome and what became of the call in the same transaction. */
  writeEnd(record: LedgerRecord, end: CallEnd): Promise<void>;
}

/** What to look up together with a token. */
export interface AccessLookup {
  tokenHash: Buffer;
  kinds: readonly CredentialKind[];
  /** Destinations in normal form. */
  urls: readonly string[];
  /** MCP server of the binding whose credential is wanted too. */
  mcpServerName: string;
  /** Its tool whose pin is wanted; null = those of all its tools; absent = none. */
  pinnedTool?: string | null;
}

/** Reads what is stored about a token. */
export interface AccessReader {
  find(lookup: AccessLookup): Promise<AccessRow | undefined>;
}

/** The session on whose behalf a secret is read. */
export interface SecretOwner {
  sessionId: string;
  workspaceId: string;
  epoch: bigint;
  /** Of the call's token, for the records of what is done on the way (a renewal of OAuth tokens). */
  spiffeId?: string;
  tokenId?: string;
  tokenHash?: Buffer;
  tokenMac?: Buffer;
  bindingMac?: Buffer;
}

/** A secret and where it came from. */
export interface Secret {
  value: string;
  version: bigint;
  /** Vault's id of the request that read it. */
  vaultRequestId: string;
  /** HMAC of the accessor of the Vault token that read it. */
  accessorHmac?: string;
}

/** Reads credentials with the session's own Vault token. */
export interface SecretReader {
  read(owner: SecretOwner, credential: CredentialRow): Promise<Secret>;
  /** The secret, when it was read a moment ago and is kept; asks nobody. */
  known(owner: SecretOwner, credential: CredentialRow): Secret | undefined;
}

/** A call as the journal has it. */
export interface JournalEntry {
  epoch: bigint;
  requestDigest: Buffer;
  requestId: string;
  /** A dispatch of which this process knows that nothing was sent counts as a claim. */
  state: "claimed" | "dispatched" | "finished";
  isRepeatable: boolean;
  result: Buffer | null;
  /** The process that wrote it is this one. */
  isOwn: boolean;
  /** The process that wrote it still lives. */
  isAlive: boolean;
}

/** The journal of tool calls. Writes that go with a record are the ledger's. */
export interface CallJournal {
  find(sessionId: string, callKey: string): Promise<JournalEntry | undefined>;
  /** Takes over an entry that nobody works on; false when it changed meanwhile. */
  takeOver(claim: CallClaim, from: JournalEntry): Promise<boolean>;
  /** Asks whichever process runs the call to give it up. */
  askToCancel(sessionId: string, callKey: string): Promise<void>;
  /** Forgets what finished calls came to; that they were made stays known. */
  forget(sessionId: string, callKeys: readonly string[]): Promise<void>;
  /** Forgets the calls and the tokens of sessions that ended a while ago; answers how many calls there were. */
  forgetEnded(): Promise<number>;
}

/** A pin, all of it. */
export interface ToolPinRecord extends ToolPin {
  serverUrl: string;
  definition: string;
  pinnedBy: string;
  pinnedAt: Date;
  seenDefinition: string | null;
  seenAt: Date | null;
}

/** The pins of tools, by workspace, server and tool. */
export interface ToolPinStore {
  /** Pins tools that have no pin, notes what was seen of those that have another; answers the pins as they are now. */
  pin(
    workspaceId: string,
    serverUrl: string,
    tools: readonly (PinnedDefinition & { mac: Buffer })[],
  ): Promise<ToolPin[]>;
  /** Makes a digest that is pinned or was seen last the pin; undefined when it is neither, or there is no such tool. */
  approve(approval: {
    workspaceId: string;
    serverUrl: string;
    toolName: string;
    sha256: Buffer;
    mac: Buffer;
    by: string;
  }): Promise<ToolPinRecord | undefined>;
  /** By server and tool, after those names. An empty serverUrl = of all servers. */
  list(options: {
    workspaceId: string;
    serverUrl: string;
    onlyChanged: boolean;
    after: readonly [string, string];
    limit: number;
  }): Promise<ToolPinRecord[]>;
}
