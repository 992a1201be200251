import { once } from "node:events";
import type { ServerResponse } from "node:http";

/** Writes an answer to a hand, at the pace of its reader. */
export interface HandWriter {
  write(bytes: Buffer): Promise<void>;
  /** Ends the answer; call it when its outcome is written: an answer that ends well is one that the log knows of. */
  end(): void;
}

/**
 * Makes a writer. Pieces go out as they come. Where all bytes are the end, since their number was said before or the client
 * does not know of chunks, the last piece is held until the end.
 */
export function createHandWriter(
  response: ServerResponse,
  { isCounted, signal }: { isCounted: boolean; signal: AbortSignal },
): HandWriter {
  const holds = isCounted || response.req.httpVersion !== "1.1";
  let held: Buffer = Buffer.alloc(0);
  return {
    write: async (bytes) => {
      if (bytes.length === 0) return;
      const now = holds ? held : bytes;
      if (holds) held = bytes;
      if (now.length > 0 && !response.write(now)) await once(response, "drain", { signal });
    },
    end: () => void response.end(held),
  };
}
