/** One server-sent event. */
export interface ServerSentEvent {
  event: string;
  data: string;
}

/** Bound of what one event may hold; more means that the other end is not what it says. */
const MAX_EVENT_CHARS = 32 * 1024 * 1024;

/** Reads server-sent events from bytes as they come; characters and lines may be cut anywhere between chunks. */
export async function* readSse(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  let event = "";
  let data: string[] = [];
  for await (const chunk of chunks) {
    rest += decoder.decode(chunk, { stream: true });
    if (rest.length > MAX_EVENT_CHARS) throw new Error("a server-sent event is too large");
    let from = 0;
    for (;;) {
      const end = rest.indexOf("\n", from);
      if (end < 0) break;
      const line = rest.slice(from, rest[end - 1] === "\r" ? end - 1 : end);
      from = end + 1;
      if (line === "") {
        if (data.length > 0) yield { event, data: data.join("\n") };
        event = "";
        data = [];
      } else if (line.startsWith("event:")) event = fieldOf(line, 6);
      else if (line.startsWith("data:")) data.push(fieldOf(line, 5));
    }
    rest = rest.slice(from);
  }
  // An event without its closing empty line was cut off and is not passed on.
}

function fieldOf(line: string, from: number): string {
  return line[from] === " " ? line.slice(from + 1) : line.slice(from);
}
