/**
 * Keeps the head and the tail of a text that is too long and says in between what is missing. Characters are UTF-16
 * units, but none is cut in half.
 */
export function capText(text: string, limit: number): string {
  return text.length <= limit ? text : joinEnds(text, text, text.length, limit);
}

/** As capText() of a text of that length, which is longer than the limit: of its ends half the limit each is enough. */
export function joinEnds(begin: string, end: string, length: number, limit: number): string {
  const half = Math.floor(limit / 2);
  const head = begin.slice(0, isHighSurrogate(begin, half - 1) ? half - 1 : half);
  const from = end.length - half;
  const tail = end.slice(isLowSurrogate(end, from) ? from + 1 : from);
  const missing = length - head.length - tail.length;
  return `${head}\n\n[… ${missing} characters left out …]\n\n${tail}`;
}

function isHighSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
