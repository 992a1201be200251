import type { Conversation } from "../conversation.ts";
import { type Reply, say } from "../reply.ts";
import { paced } from "./shapes.ts";

/** stop ends a text with the stop reason `reason`, known to anyone or not. */
export function stop(conversation: Conversation): Reply {
  const reason = conversation.params.get("reason") ?? "end_turn";
  return paced(conversation, { ...say(`This turn ends with ${reason}.`), stopReason: reason });
}

/** truncatedText stops in the middle of a sentence because of max_tokens. */
export function truncatedText(conversation: Conversation): Reply {
  return paced(conversation, { ...say("This sentence has no"), stopReason: "max_tokens" });
}

/** refusal ends with a refusal. */
export function refusal(conversation: Conversation): Reply {
  return paced(conversation, { ...say("I will not do that."), stopReason: "refusal" });
}

/** pauseTurn pauses once and finishes when its own half turn is sent back to it. */
export function pauseTurn(conversation: Conversation): Reply {
  if (conversation.turns > 0) return paced(conversation, say("Second half, after the pause."));
  return paced(conversation, { ...say("First half."), stopReason: "pause_turn" });
}

/** unknownBlock puts a block of a type that no SDK knows between two texts. */
export function unknownBlock(conversation: Conversation): Reply {
  const block = { type: "hologram", depth: 3, nested: { b: 1, a: [1.0, 1e21, "ü"] } };
  const text = (words: string) => ({ type: "text" as const, text: words });
  const blocks = [text("Before."), { type: "unknown" as const, block }, text("After.")];
  return paced(conversation, { blocks, stopReason: "end_turn" });
}

/** empty ends its turn without a single block. */
export function empty(): Reply {
  return { blocks: [], stopReason: "end_turn" };
}
