import { Event } from "../../gen/ganglion/types/v1/event.ts";
import { describeEvent, type EventWords } from "./describe-event.ts";
import type { Terminal } from "./terminal.ts";
import { visibleLines } from "./visible-text.ts";

const STYLES = {
  user: "cyan",
  agent: "white",
  tool: "yellow",
  hand: "magenta",
  brain: "blue",
  session: "green",
  error: "red",
} as const satisfies Record<EventWords["kind"], string>;

/** showEvent prints one event: a line or more for people, one JSON object for programs. */
export function showEvent(terminal: Terminal, event: Event): void {
  if (terminal.json) {
    terminal.object(Event.toJSON(event));
    return;
  }
  const words = describeEvent(event);
  if (!words || words.text === "") return;
  const margin = `${String(event.position).padStart(5)}  ${words.who.padEnd(8)}`;
  const [first = "", ...rest] = visibleLines(words.text).split("\n");
  terminal.line(
    `${terminal.style("dim", margin.slice(0, 7))}${terminal.style(STYLES[words.kind], margin.slice(7))} ${first}`,
  );
  for (const line of rest) terminal.line(`${" ".repeat(margin.length)} ${line}`);
}

/** upstreamOf names the model upstream that answered a request; undefined for other events. */
export function upstreamOf(event: Event): string | undefined {
  return event.body?.$case === "spanModelRequestEnd" ? event.body.value.upstream : undefined;
}
