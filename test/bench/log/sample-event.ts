import { randomBytes } from "node:crypto";
import { Event } from "../../../services/gen/ganglion/types/v1/event.ts";

const BODY_BYTES = 1024;

/** An agent.message of about 1 KB, without an id. The text does not compress to nothing. */
export const SAMPLE_EVENT: Event = Event.fromPartial({
  body: {
    $case: "agentMessage",
    value: {
      block: {
        type: "text",
        data: {
          $case: "json",
          value: Buffer.from(JSON.stringify({ type: "text", text: randomText(BODY_BYTES - 100) })),
        },
      },
      modelRequestStartId: "sevt_bench",
      blockIndex: 0,
    },
  },
});

/** The type under which the log stores it. */
export const SAMPLE_TYPE = "agent.message";

function randomText(length: number): string {
  return randomBytes(length).toString("base64").slice(0, length);
}
