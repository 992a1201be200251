/**
 * Keeps the head and the tail of a text that is too long and says in between what is missing. Characters are UTF-16
 * units, but none is cut in half.
 */
export function capText(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const half = Math.floor(limit / 2);
  const head = text.slice(0, isHighSurrogate(text, half - 1) ? half - 1 : half);
  const from = text.length - half;
  const tail = text.slice(isLowSurrogate(text, from) ? from + 1 : from);
  const missing = text.length - head.length - tail.length;
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
