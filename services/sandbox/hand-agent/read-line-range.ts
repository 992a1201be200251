import type { FileHandle } from "node:fs/promises";
import { ToolError } from "./tool-error.ts";

const NEWLINE = 0x0a;

/** Lines to read: both ends from 1 and inclusive; an end of 0 or less is the last line. */
export type LineRange = { start: number; end: number; maxBytes: number };

/**
 * readLineRange returns the bytes of some lines of a file of any size without loading the rest, and refuses to
 * collect more than maxBytes.
 */
export async function readLineRange(file: FileHandle, range: LineRange): Promise<Buffer> {
  const start = Math.max(1, range.start);
  const end = range.end > 0 ? range.end : Number.POSITIVE_INFINITY;
  const collected: Buffer[] = [];
  const buffer = Buffer.allocUnsafe(64 * 1024);
  let line = 1;
  let size = 0;
  while (line <= end) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0) break;
    let from = 0;
    while (from < bytesRead && line <= end) {
      const newline = buffer.subarray(from, bytesRead).indexOf(NEWLINE);
      const to = newline < 0 ? bytesRead : from + newline + 1;
      if (line >= start) {
        size += to - from;
        if (size > range.maxBytes) throw new ToolError(`read: the lines exceed ${range.maxBytes} bytes`);
        collected.push(Buffer.from(buffer.subarray(from, to)));
      }
      if (newline >= 0) line += 1;
      from = to;
    }
  }
  return Buffer.concat(collected);
}
