import { type Hand, HandState } from "../../gen/ganglion/sandbox/v1/sandbox_service.ts";
import type { Timestamp } from "../../gen/google/protobuf/timestamp.ts";
import type { HandRecord } from "../domain/hand-registry.ts";
import type { HandOffer } from "./sandbox-deps.ts";

/** mapHand is a hand as callers see it; the host's process id is for operators. */
export function mapHand(record: HandRecord, offer: HandOffer, isOperator: boolean): Hand {
  const isReady = record.state === "READY";
  return {
    id: record.id,
    sessionId: record.sessionId,
    state: isReady ? HandState.HAND_STATE_READY : HandState.HAND_STATE_LOST,
    driver: offer.driver,
    createTime: toTimestamp(record.createdAt),
    lastUsedTime: toTimestamp(record.lastUsedAt),
    tools: [...offer.tools],
    unenforcedLimits: [...offer.unenforcedLimits],
    host: offer.host,
    hostPid: isOperator && isReady ? BigInt(record.driven?.hostPid ?? 0) : 0n,
  };
}

function toTimestamp(ms: number): Timestamp {
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
}
