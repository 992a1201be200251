const ESC = "\x1b";
const BEL = "\x07";
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this file is about
const NEEDS_WORK = /[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]/;
const MAX_LINE_CHARS = 65_536;
const MAX_SEQUENCE_CHARS = 4_096;

/**
 * TextCleaner turns terminal output, chunk by chunk, into the text a model should read: control sequences are
 * removed and a line that was redrawn in place is kept once, as it last looked (case B063). Lines leave through
 * `emit` when they can no longer change.
 */
export class TextCleaner {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #emit: (text: string) => void;
  #line = "";
  #isReturned = false;
  #sequence = "";

  constructor(emit: (text: string) => void) {
    this.#emit = emit;
  }

  /** push takes the next bytes; a character may be split between two chunks (case B060). */
  push(chunk: Buffer): void {
    this.#feed(this.#decoder.decode(chunk, { stream: true }));
  }

  /** end flushes what is pending; a half character becomes one U+FFFD (case B061). */
  end(): void {
    this.#feed(this.#decoder.decode());
    if (this.#line !== "") this.#emit(this.#line);
    this.#line = "";
    this.#sequence = "";
  }

  #feed(text: string): void {
    if (this.#sequence === "" && !this.#isReturned && !NEEDS_WORK.test(text)) {
      this.#append(text);
      return;
    }
    for (const char of text) this.#step(char);
  }

  #append(text: string): void {
    const newline = text.lastIndexOf("\n");
    if (newline >= 0) {
      this.#emit(this.#line + text.slice(0, newline + 1));
      this.#line = text.slice(newline + 1);
    } else {
      this.#line += text;
    }
    if (this.#line.length > MAX_LINE_CHARS) {
      this.#emit(this.#line);
      this.#line = "";
    }
  }

  #step(char: string): void {
    if (this.#sequence !== "") {
      this.#sequence += char;
      if (isComplete(this.#sequence)) this.#finishSequence();
      return;
    }
    if (char === ESC) this.#sequence = ESC;
    else if (char === "\x9b") this.#sequence = `${ESC}[`;
    else if (char === "\r") this.#isReturned = true;
    else if (char === "\n") {
      this.#isReturned = false;
      this.#append("\n");
    } else if (char === "\b") this.#line = this.#line.slice(0, -1);
    else if (char === "\0") this.#put("\u2400");
    else if (char === "\t" || !NEEDS_WORK.test(char)) this.#put(char);
  }

  /** A carriage return redraws the line only once something is drawn over it. */
  #put(char: string): void {
    if (this.#isReturned) this.#line = "";
    this.#isReturned = false;
    this.#append(char);
  }

  #finishSequence(): void {
    const sequence = this.#sequence;
    this.#sequence = "";
    // Erase line, and "cursor to column 1", are the other two ways to redraw a line.
    if (sequence === `${ESC}[2K`) this.#line = "";
    else if (sequence === `${ESC}[G` || sequence === `${ESC}[1G`) this.#isReturned = true;
  }
}

function isComplete(sequence: string): boolean {
  if (sequence.length < 2) return false;
  if (sequence.length > MAX_SEQUENCE_CHARS) return true;
  const kind = sequence[1]!;
  const last = sequence.at(-1)!;
  if (kind === "[") return sequence.length > 2 && last >= "@" && last <= "~";
  // OSC, DCS, SOS, PM and APC run to BEL or ESC backslash; a newline ends a broken one.
  if ("]PX^_".includes(kind)) return last === BEL || last === "\n" || sequence.endsWith(`${ESC}\\`);
  // An intermediate byte (character sets) takes one more.
  return kind >= " " && kind <= "/" ? sequence.length > 2 : true;
}
