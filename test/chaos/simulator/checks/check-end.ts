import { STOP } from "../../../../services/harness/domain/proto-values.ts";
import type { Observer } from "../parts/observer.ts";
import { LAST_WORDS, type ScriptedMind } from "../parts/scripted-mind.ts";
import type { User } from "../parts/user.ts";

/** After one more turn: it ended as it should, and the model was told all that the user said, once and in order. */
export function checkEnd(observer: Observer, user: User, mind: ScriptedMind): string[] {
  const faults: string[] = [];
  const state = observer.look();
  if (state.status !== "idle") faults.push(`the session is ${state.status} in the end`);
  if (state.queued.length > 0) faults.push("input was left behind");
  const idle = observer.events.findLast(({ body }) => body?.$case === "sessionStatusIdle")?.body;
  const stop = idle?.$case === "sessionStatusIdle" ? idle.value.stopReason?.type : undefined;
  if (stop !== STOP.END_TURN) faults.push(`the last turn ended with ${stop}`);

  const inLog = observer.events.flatMap(({ id, body }) => (body?.$case === "userMessage" ? [id] : []));
  const words = inLog.map((id) => user.said.get(id) ?? "?");
  if (words.toSorted().join() !== [...user.said.values()].toSorted().join()) {
    faults.push(`the log has [${words.join()}]`);
  }
  const messages = mind.newest.get(observer.sessionId) ?? [];
  const told = messages
    .filter(({ role }) => role === "user")
    .flatMap(({ content }) => content.flatMap(({ type, text = "" }) => (type === "text" ? [text] : [])));
  // What a summary stands for is not told word for word any more; what is newer is.
  const newest = observer.showsAll ? told : told.filter((said) => words.includes(said));
  const expected = observer.showsAll ? words : words.slice(words.length - newest.length);
  if (newest.join() !== expected.join())
    faults.push(`the model was told [${told.join()}] of [${words.join()}]`);
  if (told.at(-1) !== LAST_WORDS) faults.push("the last words were not the last");
  return faults;
}
