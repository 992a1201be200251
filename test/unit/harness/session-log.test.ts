import assert from "node:assert/strict";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { newEvent } from "../../../services/harness/driver/new-events.ts";
import { SessionLog } from "../../../services/harness/driver/session-log.ts";
import { session } from "./fakes/brain.ts";
import { MemoryLog } from "./fakes/memory-log.ts";

describe("an append", () => {
  it("is not over because an event of somebody else has the id of its last one [L2]", async () => {
    const port = new MemoryLog(session());
    const stop = new AbortController();
    const log = new SessionLog(port, port.lease(), stop.signal);
    await log.load();
    const followed = log.follow();
    port.append = async (_lease, [event]) => {
      port.client("user.message", { content: [{ type: "text", text: "Mine." }] }, event?.id);
      await port.until(() => port.watched === port.head);
      throw new GanglionError({ code: "ALREADY_EXISTS", reason: "ID_REUSED", message: "" });
    };
    const event = newEvent({ $case: "sessionStatusRunning", value: {} });
    await assert.rejects(log.append([event]), { reason: "ID_REUSED" });
    assert.equal(log.state.position, port.head);
    stop.abort();
    await followed;
  });
});
