import type { SessionError_Part } from "../../gen/ganglion/types/v1/event.ts";
import { PART } from "./proto-values.ts";

/** Why something did not work, in the words of the log. */
export interface Failure {
  /** Which part failed (law L8). */
  part: SessionError_Part;
  /** Public error type of session.error. */
  errorType: string;
  /** One sentence; never upstream text. */
  message: string;
  /** In the vocabulary of the error_reason.proto files. */
  reason: string;
}

/** Ends of a turn that a brain decides on by itself. */
export const FAILURES = {
  modelFailed: {
    part: PART.MODEL,
    errorType: "model_request_failed_error",
    message: "The model could not be asked; all attempts are used up.",
    reason: "MODEL_FAILED",
  },
  answerTruncated: {
    part: PART.MODEL,
    errorType: "model_request_failed_error",
    message: "The model's answer was cut at the token limit.",
    reason: "MODEL_ANSWER_TRUNCATED",
  },
  contextExceeded: {
    part: PART.MODEL,
    errorType: "model_request_failed_error",
    message: "The conversation no longer fits into the model's window.",
    reason: "MODEL_CONTEXT_EXCEEDED",
  },
  compactionLimit: {
    part: PART.BRAIN,
    errorType: "compaction_limit_reached_error",
    message: "The conversation does not fit into the model's window, however much of it is summarised.",
    reason: "COMPACTION_LIMIT",
  },
  contextStrategyInvalid: {
    part: PART.BRAIN,
    errorType: "unknown_error",
    message: "The session's context strategy or its options are not known to this version of the harness.",
    reason: "CONTEXT_STRATEGY_INVALID",
  },
  prefixBroken: {
    part: PART.BRAIN,
    errorType: "unknown_error",
    message: "The next request does not begin as promised, so it was not sent.",
    reason: "CONTEXT_PREFIX_BROKEN",
  },
  stopUnknown: {
    part: PART.MODEL,
    errorType: "model_request_failed_error",
    message: "The model stopped for a reason that this version does not know.",
    reason: "MODEL_STOP_UNKNOWN",
  },
  turnLimit: {
    part: PART.BRAIN,
    errorType: "tool_use_limit_reached_error",
    message: "The turn took more steps than are allowed.",
    reason: "TURN_LIMIT",
  },
  noProgress: {
    part: PART.BRAIN,
    errorType: "unknown_error",
    message: "The session was taken over several times without getting any further.",
    reason: "NO_PROGRESS",
  },
  unknownEvent: {
    part: PART.BRAIN,
    errorType: "unknown_error",
    message: "The log holds an event that this version of the harness must not skip.",
    reason: "EVENT_TYPE_NOT_SUPPORTED",
  },
  requestNotBuilt: {
    part: PART.BRAIN,
    errorType: "unknown_error",
    message: "No request could be built from the log.",
    reason: "MODEL_REQUEST_REJECTED",
  },
  answerNotStored: {
    part: PART.BRAIN,
    errorType: "unknown_error",
    message: "The model's answer cannot be stored.",
    reason: "INTERNAL",
  },
} as const satisfies Record<string, Failure>;
