import { type AuditLine, readAuditLine } from "./audit-record.ts";

/**
 * Merges the lines of several files by sequence. A line that several files have with the same bytes comes once; what one
 * file has out of order stays out of order. A line without a readable sequence comes where its file has it.
 */
export function* mergeLogs(files: readonly Iterable<string>[]): Generator<AuditLine> {
  const heads = files.map((file, index) => {
    const lines = file[Symbol.iterator]();
    return { index, lines, line: nextOf(lines) };
  });
  let last: { text: string; from: number } | undefined;
  for (;;) {
    let first: (typeof heads)[number] | undefined;
    for (const head of heads) {
      if (head.line && (!first?.line || placeOf(head.line) < placeOf(first.line))) first = head;
    }
    if (!first?.line) return;
    const { line, index } = first;
    first.line = nextOf(first.lines);
    if (last && last.text === line.text && last.from !== index) continue;
    last = { text: line.text, from: index };
    yield line;
  }
}

function nextOf(lines: Iterator<string>): AuditLine | undefined {
  const { value, done } = lines.next();
  return done ? undefined : readAuditLine(value);
}

function placeOf({ record }: AuditLine): bigint {
  return record ? BigInt(record.sequence) : 0n;
}
