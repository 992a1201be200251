import type { AccessRow, CredentialRow } from "../../../../services/mcp-proxy/domain/access.ts";
import type {
  AccessReader,
  CallClaim,
  CallJournal,
  Guard,
  JournalEntry,
  Ledger,
  ToolPinStore,
} from "../../../../services/mcp-proxy/domain/ports.ts";
import { proxyError } from "../../../../services/mcp-proxy/domain/proxy-error.ts";
import type { BindingStore, StoredBinding } from "../../../../services/mcp-proxy/domain/records.ts";
import type { BindingFields, TokenFields } from "../../../../services/mcp-proxy/domain/row-mac.ts";
import type { SimDatabase } from "./sim-database.ts";

interface CallRow {
  epoch: bigint;
  requestDigest: Buffer;
  requestId: string;
  bootId: string;
  state: JournalEntry["state"];
  isRepeatable: boolean;
  result: Buffer | null;
}

/** How strict the proxy's journal is; a mutation of the simulator makes it worse. */
export interface ProxyRules {
  /** False: a key that is known can be claimed again. */
  claimsOnce: boolean;
}

/** mcp-proxy's schema in the simulated database. It outlives the processes. */
export class ProxyTables {
  readonly database: SimDatabase;
  readonly rules: ProxyRules = { claimsOnce: true };
  readonly credentials: CredentialRow[] = [];
  /** The boot that lives. */
  liveBoot = "";
  readonly #bindings = new Map<string, BindingFields & { mac: Buffer }>();
  readonly #tokens = new Map<string, TokenFields & { mac: Buffer }>();
  readonly #calls = new Map<string, CallRow>();

  constructor(database: SimDatabase) {
    this.database = database;
  }

  /** Binds a session, as CreateSession does. */
  bind(row: BindingFields, mac: Buffer): void {
    this.#bindings.set(row.sessionId, { ...row, mac });
    this.database.raiseFence(row.sessionId, 0n, false);
  }

  bindings(): BindingStore {
    const { database } = this;
    return {
      insert: async () => false,
      replaceServers: async () => false,
      find: async (sessionId): Promise<StoredBinding | undefined> => {
        await database.step();
        const row = this.#bindings.get(sessionId);
        return row && { ...row, ...this.#fenceOf(sessionId) };
      },
      insertToken: async (row, mac) => {
        await database.step();
        this.#tokens.set(row.tokenHash.toString("hex"), { ...row, mac });
      },
      raiseFence: async (sessionId, lowestEpoch, ended) => {
        await database.step();
        database.raiseFence(sessionId, lowestEpoch, ended);
      },
    };
  }

  access(): AccessReader {
    return {
      find: async (lookup): Promise<AccessRow | undefined> => {
        await this.database.step();
        const token = this.#tokens.get(lookup.tokenHash.toString("hex"));
        const binding = token && this.#bindings.get(token.sessionId);
        if (!token || !binding) return undefined;
        const { workspaceId, vaultIds, mcpServers, models, networking, gitRepositories } = binding;
        return {
          ...token,
          ...{ tokenMac: token.mac, bindingMac: binding.mac, workspaceId },
          ...{ vaultIds: [...vaultIds], mcpServers: [...mcpServers], models: [...models] },
          ...{ networking, gitRepositories: [...gitRepositories] },
          ...this.#fenceOf(token.sessionId),
          credentials: this.credentials.filter(({ kind }) => lookup.kinds.includes(kind)),
          toolPins: [],
        };
      },
    };
  }

  /** Tools never change here: what is seen is what was pinned. */
  pins(): ToolPinStore {
    return {
      pin: async (_workspaceId, _serverUrl, tools) => {
        await this.database.step();
        return tools.map(({ name, sha256, mac }) => ({ toolName: name, sha256, seenSha256: null, mac }));
      },
      approve: async () => undefined,
      list: async () => [],
    };
  }

  ledger(bootId: string): Ledger {
    const { database } = this;
    const step = async (): Promise<void> => {
      await database.step().catch((cause: unknown) => {
        throw proxyError("AUDIT_UNAVAILABLE", { cause });
      });
    };
    return {
      write: async (_record, guard) => {
        await step();
        return guard && this.#check(guard);
      },
      writeTogether: async (_decision, guard) => {
        await step();
        return this.#check(guard);
      },
      writeAndClaim: async (_record, guard, claim) => {
        await step();
        const refusal = this.#check(guard);
        if (refusal !== undefined) return { refusal, isClaimed: false };
        return { isClaimed: this.#claim(claim, bootId) };
      },
      writeClaimAndDispatch: async (_record, guard, claim, { isRepeatable }) => {
        await step();
        const refusal = this.#check(guard);
        if (refusal !== undefined) return { refusal, isClaimed: false };
        return { isClaimed: this.#claim(claim, bootId, { state: "dispatched", isRepeatable }) };
      },
      writeDispatch: async (record, { sessionId, callKey, isRepeatable }) => {
        await step();
        const row = this.#calls.get(nameOf(sessionId, callKey));
        if (row?.requestId !== record.request_id || row.state !== "claimed") return false;
        Object.assign(row, { state: "dispatched", isRepeatable });
        return true;
      },
      writeEnd: async (_record, { sessionId, callKey, requestId, result }) => {
        await step();
        const row = this.#calls.get(nameOf(sessionId, callKey));
        if (row?.requestId !== requestId || row.state === "finished") return;
        if (result === null) this.#calls.delete(nameOf(sessionId, callKey));
        else Object.assign(row, { state: "finished", result });
      },
    };
  }

  journal(bootId: string): CallJournal {
    const { database } = this;
    return {
      find: async (sessionId, callKey) => {
        await database.step();
        const row = this.#calls.get(nameOf(sessionId, callKey));
        return row && { ...row, isOwn: row.bootId === bootId, isAlive: row.bootId === this.liveBoot };
      },
      takeOver: async (claim, from) => {
        await database.step();
        const row = this.#calls.get(nameOf(claim.sessionId, claim.callKey));
        if (row?.requestId !== from.requestId || row.state !== from.state) return false;
        Object.assign(row, { state: "claimed", requestId: claim.requestId, epoch: claim.epoch, bootId });
        return true;
      },
      askToCancel: async () => {
        await database.step();
      },
      forget: async (sessionId, callKeys) => {
        await database.step();
        for (const callKey of callKeys) {
          const row = this.#calls.get(nameOf(sessionId, callKey));
          if (row?.state === "finished") Object.assign(row, { result: null });
        }
      },
      forgetEnded: async () => 0,
    };
  }

  #claim(
    claim: CallClaim,
    bootId: string,
    begun: Pick<CallRow, "state" | "isRepeatable"> = { state: "claimed", isRepeatable: false },
  ): boolean {
    const name = nameOf(claim.sessionId, claim.callKey);
    if (this.#calls.has(name) && this.rules.claimsOnce) return false;
    const { epoch, requestDigest, requestId } = claim;
    this.#calls.set(name, { epoch, requestDigest, requestId, bootId, ...begun, result: null });
    return true;
  }

  #check(guard: Guard): string | undefined {
    const token = this.#tokens.get(guard.tokenHash.toString("hex"));
    if (!token) return "TOKEN_INVALID";
    const fence = this.database.fences.get(token.sessionId);
    if (!fence || fence.ended) return "SESSION_ENDED";
    return token.epoch < fence.lowestEpoch ? "TOKEN_STALE_EPOCH" : undefined;
  }

  #fenceOf(sessionId: string): { lowestEpoch: bigint | null; ended: boolean | null } {
    return this.database.fences.get(sessionId) ?? { lowestEpoch: null, ended: null };
  }
}

function nameOf(sessionId: string, callKey: string): string {
  return `${sessionId}\n${callKey}`;
}
