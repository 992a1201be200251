import { findMember } from "../../common/json/json-span.ts";

/**
 * The text of a tool's structured content, as its server wrote it: the SDK reads numbers that hold some 15 digits, and an id
 * beyond 2^53 would come out of them as another one. So the text is looked up in the bodies of the answer (without the
 * credential, as the SDK got them), and taken if it says what the SDK has read. The message of an answer in a list of
 * messages, which MCP has given up, is not looked for: its numbers are those that the SDK read.
 */
export function structuredText(value: unknown, bodies: readonly string[]): string {
  const written = JSON.stringify(value);
  for (const body of bodies) {
    for (const message of messagesIn(body)) {
      try {
        const text = memberOf(memberOf(message, "result"), "structuredContent");
        if (text !== "" && JSON.stringify(JSON.parse(text)) === written) return text;
      } catch {
        // No JSON: whatever it is, the SDK has not read it as an answer.
      }
    }
  }
  return written;
}

function memberOf(json: string, name: string): string {
  const span = findMember(json, name);
  return span ? json.slice(span.start, span.end) : "";
}

/** The messages of a body that is one, or a stream of events with one in the data of each. */
function messagesIn(body: string): string[] {
  const text = body.trimStart();
  if (text.startsWith("{")) return [text];
  return text
    .replace(/\r\n?/g, "\n")
    .split("\n\n")
    .map((event) =>
      event
        .split("\n")
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice("data:".length))
        .join("\n"),
    );
}
