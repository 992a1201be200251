import assert from "node:assert/strict";
import type { Event } from "../../services/gen/ganglion/types/v1/event.ts";

type Bodies = { [Body in NonNullable<Event["body"]> as Body["$case"]]: Body["value"] };

/** The bodies of one kind, in order. */
export function bodiesOf<Case extends keyof Bodies>(events: readonly Event[], kind: Case): Bodies[Case][] {
  return events.flatMap(({ body }) => (body?.$case === kind ? [body.value as Bodies[Case]] : []));
}

/** The text of all text blocks. */
export function textOf(blocks: readonly { type: string; data?: unknown }[]): string {
  const texts = blocks.map(({ data }) => {
    const { $case, value } = (data ?? {}) as { $case?: string; value?: Uint8Array };
    const block = $case === "json" && value ? JSON.parse(Buffer.from(value).toString()) : {};
    return typeof block.text === "string" ? block.text : "";
  });
  return texts.join("");
}

/** The text of the assistant's last message. */
export function answerOf(events: readonly Event[]): string {
  const block = bodiesOf(events, "agentMessage").at(-1)?.block;
  return block ? textOf([block]) : "";
}

/** What must hold of every log, whatever was killed: dense (L2), one brain at a time (L3), one result a call (L4). */
export function checkLog(events: readonly Event[]): void {
  assert.deepEqual(
    events.map(({ position }) => position),
    events.map((_, index) => BigInt(index + 1)),
    "the positions are dense",
  );
  assert.equal(new Set(events.map(({ id }) => id)).size, events.length, "no event is there twice");
  let epoch = 0n;
  for (const event of events) {
    if (event.body?.$case === "ganglionLeaseAcquired") {
      assert.ok(event.body.value.epoch > epoch, "the epoch rises");
      epoch = event.body.value.epoch;
    }
    assert.ok(
      event.epoch === 0n || event.epoch === epoch,
      `position ${event.position} is of a brain that was replaced`,
    );
  }
  assert.deepEqual(answered(events), asked(events), "every call has exactly one result");
}

/** Calls that count: those of requests that ended well. */
function asked(events: readonly Event[]): string[] {
  const ended = bodiesOf(events, "spanModelRequestEnd").filter(({ isError }) => !isError);
  const good = new Set(ended.map(({ modelRequestStartId }) => modelRequestStartId));
  const calls = events.flatMap(({ id, body }) =>
    (body?.$case === "agentToolUse" || body?.$case === "agentMcpToolUse") &&
    good.has(body.value.modelRequestStartId)
      ? [id]
      : [],
  );
  return calls.toSorted();
}

function answered(events: readonly Event[]): string[] {
  const builtIn = bodiesOf(events, "agentToolResult").map(({ toolUseId }) => toolUseId);
  return [
    ...builtIn,
    ...bodiesOf(events, "agentMcpToolResult").map(({ mcpToolUseId }) => mcpToolUseId),
  ].toSorted();
}
