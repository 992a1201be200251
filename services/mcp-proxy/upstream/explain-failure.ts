import { endingOf } from "../domain/passage.ts";
import { proxyError, type Reason } from "../domain/proxy-error.ts";
import { UpstreamFailure, type UpstreamFailureKind } from "./upstream-failure.ts";

/** What is made of a failure. */
export interface ExplainedFailure {
  /** What whoever asked is told: why the request was cut, or what became of the upstream. */
  told: unknown;
  /** The word for the outcome record. */
  ending: string;
}

const REASONS: Partial<Record<UpstreamFailureKind, Reason>> = {
  unreachable: "UPSTREAM_UNREACHABLE",
  timeout: "UPSTREAM_TIMEOUT",
  too_large: "MESSAGE_TOO_LARGE",
};

/** Explains why a request came to nothing; its signal is aborted as "cancelled" when whoever asked has gone away. */
export function explainFailure(error: unknown, { aborted, reason }: AbortSignal): ExplainedFailure {
  const isGone = aborted && reason instanceof UpstreamFailure && reason.kind === "cancelled";
  const told = toldOf(aborted ? reason : error);
  return { told, ending: isGone ? "cancelled" : endingOf(told) };
}

function toldOf(error: unknown): unknown {
  return error instanceof UpstreamFailure ? proxyError(REASONS[error.kind] ?? "UPSTREAM_MALFORMED") : error;
}
