/**
 * visible makes text of others harmless on a terminal: control characters, escape sequences and bidirectional
 * overrides become visible signs. Line breaks and tabs become spaces. [A077]
 */
export function visible(text: string): string {
  return escapeControls(text.replace(/[\r\n\t]+/g, " "));
}

/** visibleLines is visible for text of several lines. */
export function visibleLines(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => escapeControls(line.replaceAll("\t", "  ")))
    .join("\n");
}

function escapeControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (sign) => {
    return `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
