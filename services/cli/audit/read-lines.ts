import { closeSync, openSync, readSync } from "node:fs";

const CHUNK_BYTES = 1024 * 1024;
const LINE_FEED = 0x0a;

/**
 * Yields the lines of a file without their line feeds, reading a piece at a time: logs are larger than memory. A last
 * line without line feed was being written when its process died and is left out.
 */
export function* readLines(path: string): Generator<string> {
  const file = openSync(path, "r");
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    let rest: Buffer = Buffer.alloc(0);
    for (let size = readSync(file, chunk); size > 0; size = readSync(file, chunk)) {
      const data = Buffer.concat([rest, chunk.subarray(0, size)]);
      let start = 0;
      for (let end = data.indexOf(LINE_FEED); end >= 0; end = data.indexOf(LINE_FEED, start)) {
        yield data.toString("utf8", start, end);
        start = end + 1;
      }
      rest = Buffer.from(data.subarray(start));
    }
  } finally {
    closeSync(file);
  }
}
