import { TailWindow } from "./tail-window.ts";

/**
 * HeadTailText keeps the beginning and the end of a text of any length and says how much it left out.
 * The end gets the larger share: that is where a command says why it failed.
 */
export class HeadTailText {
  readonly #headLimit: number;
  readonly #tail: TailWindow<string>;
  #head = "";

  constructor(limit: number) {
    this.#headLimit = Math.floor(limit * 0.4);
    this.#tail = new TailWindow(limit - this.#headLimit, (pieces) => pieces.join(""));
  }

  get isTruncated(): boolean {
    return this.#tail.dropped > 0;
  }

  /** push adds text at the end. */
  push(text: string): void {
    const room = this.#headLimit - this.#head.length;
    if (room > 0) this.#head += text.slice(0, room);
    this.#tail.push(room > 0 ? text.slice(room) : text);
  }

  /** toString joins head and tail, with a line in between that tells how many characters are missing. */
  toString(): string {
    const tail = this.#tail.value();
    if (!this.isTruncated) return (this.#head + tail).toWellFormed();
    const marker = `\n[… ${this.#tail.dropped} characters left out …]\n`;
    // A cut may fall between the two halves of a character.
    return `${this.#head.toWellFormed()}${marker}${tail.toWellFormed()}`;
  }
}
