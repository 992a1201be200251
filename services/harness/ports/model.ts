import type { ModelUsage } from "../../gen/ganglion/types/v1/content.ts";
import type { SessionError_Part } from "../../gen/ganglion/types/v1/event.ts";

/** One block of an answer, byte for byte as the provider sent it. */
export interface AnswerBlock {
  index: number;
  type: string;
  json: string;
  /** Calls only. */
  call?: {
    providerCallId: string;
    name: string;
    /** The input as generated; may be no JSON at all when the model was cut short (M20, M21). */
    inputJson: string;
  };
}

/** A whole answer. */
export interface Answer {
  messageId: string;
  blocks: AnswerBlock[];
  stopReason: string;
  stopDetailsJson: string;
  usage: ModelUsage | undefined;
  upstream: string;
  firstTokenMs: number | undefined;
}

/** Told while an answer is being generated. */
export interface AnswerListener {
  onBlockStart(index: number, type: string): void;
  onText(index: number, text: string): void;
}

/** A request that is under way to the door but for its end. Nobody is asked before ask() sends that. */
export interface OpenedRequest {
  /** Gives it up: the door never has a request. Does nothing once it was sent. */
  cancel(): void;
}

/** The model's API, behind the credential proxy. */
export interface Model {
  /**
   * Brings a request to the door but for its end, as soon as there is a token, while the log is still asked to take its
   * span: the door can look the token up meanwhile. Never fails; a model without it is asked all the same.
   */
  open?(request: { body: Buffer; token: Promise<string>; traceparent?: string }): OpenedRequest;
  /** Asks once: no retries, no waiting (M17, M18). Throws ModelError. What was opened before must be the same request. */
  ask(request: {
    body: Buffer;
    token: string;
    listener: AnswerListener;
    signal: AbortSignal;
    traceparent?: string;
    opened?: OpenedRequest | undefined;
  }): Promise<Answer>;
}

/** Facts of a failed request. */
export interface ModelErrorInit {
  reason: string;
  part: SessionError_Part;
  /** Public error type of session.error. */
  errorType: string;
  message: string;
  isRetryable: boolean;
  retryAfterMs?: number;
  usage?: ModelUsage | undefined;
  upstream?: string;
  firstTokenMs?: number | undefined;
  cause?: unknown;
}

/** Why a model request failed. Never carries upstream text. */
export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly facts: ModelErrorInit;

  constructor(facts: ModelErrorInit) {
    super(facts.message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.facts = facts;
  }
}
