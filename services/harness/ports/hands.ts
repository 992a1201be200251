import type { ToolOutcome } from "../../gen/ganglion/types/v1/event.ts";
import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";
import type { RepositoryFailure } from "../domain/repository-failures.ts";

/** A hand as it was provisioned. */
export interface ProvisionedHand {
  handId: string;
  sandbox: string;
  sandboxAddr: string;
  driver: string;
  /** Repositories that are not in it. */
  repositoryFailures: readonly RepositoryFailure[];
}

/** What became of a call in a hand. */
export interface HandExecution {
  handId: string;
  outcome: ToolOutcome;
  output: string;
  isError: boolean;
  isHandLost: boolean;
  durationMs: bigint | undefined;
}

/** What a journal knows of a key. */
export type Knowledge<T> = { kind: "never" } | { kind: "running" } | { kind: "known"; value: T };

/** One call, as every method needs it. */
export interface CallRef {
  sessionId: string;
  epoch: bigint;
  /** The tool-use event's id. */
  key: string;
  signal: AbortSignal;
  traceparent: string;
}

/** The sandbox service, as a brain needs it. Aborting a call only lets go of it: what runs goes on. */
export interface Hands {
  /** Where hands are made now. */
  readonly address: string;
  provision(request: {
    sessionId: string;
    epoch: bigint;
    requestId: string;
    /** What is to be cloned into it. */
    repositories: readonly Repository[];
    signal: AbortSignal;
    traceparent: string;
  }): Promise<ProvisionedHand>;
  execute(
    call: CallRef & {
      address: string;
      handId: string;
      name: string;
      inputJson: Uint8Array;
      timeoutMs: number;
      /** Calls whose results the log holds: the journal need not keep them. */
      acknowledgedKeys: readonly string[];
    },
  ): Promise<HandExecution>;
  /** Runs nothing. */
  lookUp(call: CallRef & { address: string; wait: boolean }): Promise<Knowledge<HandExecution>>;
  /** Kills a run and answers when nothing of it runs any more; a key that does not run is left as it is. */
  cancel(call: CallRef & { address: string }): Promise<void>;
}
