import { randomBytes } from "node:crypto";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";

const BODY_BYTES = 1024;

/** An agent.message of about that many bytes, without an id. The text does not compress to nothing. */
export function sampleEvent(bytes: number): Event {
  const block = { type: "text", text: randomText(bytes - 100) };
  return Event.fromPartial({
    body: {
      $case: "agentMessage",
      value: {
        block: { type: "text", data: { $case: "json", value: Buffer.from(JSON.stringify(block)) } },
        modelRequestStartId: "sevt_bench",
        blockIndex: 0,
      },
    },
  });
}

/** An agent.message of about 1 KB, without an id. */
export const SAMPLE_EVENT: Event = sampleEvent(BODY_BYTES);

/** The type under which the log stores it. */
export const SAMPLE_TYPE = "agent.message";

function randomText(length: number): string {
  return randomBytes(length).toString("base64").slice(0, length);
}
