/**
 * HeadTailText keeps the beginning and the end of a text of any length and says how much it left out.
 * The end gets the larger share: that is where a command says why it failed.
 */
export class HeadTailText {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  #head = "";
  #tail = "";
  #dropped = 0;

  constructor(limit: number) {
    this.#headLimit = Math.floor(limit * 0.4);
    this.#tailLimit = limit - this.#headLimit;
  }

  get isTruncated(): boolean {
    return this.#dropped + Math.max(0, this.#tail.length - this.#tailLimit) > 0;
  }

  /** push adds text at the end. */
  push(text: string): void {
    const room = this.#headLimit - this.#head.length;
    if (room > 0) {
      this.#head += text.slice(0, room);
      text = text.slice(room);
    }
    this.#tail += text;
    if (this.#tail.length > 2 * this.#tailLimit + 4096) this.#cutTail();
  }

  /** toString joins head and tail, with a line in between that tells how many characters are missing. */
  toString(): string {
    this.#cutTail();
    if (this.#dropped === 0) return (this.#head + this.#tail).toWellFormed();
    const marker = `\n[… ${this.#dropped} characters left out …]\n`;
    // A cut may fall between the two halves of a character.
    return `${this.#head.toWellFormed()}${marker}${this.#tail.toWellFormed()}`;
  }

  #cutTail(): void {
    const excess = this.#tail.length - this.#tailLimit;
    if (excess <= 0) return;
    this.#dropped += excess;
    this.#tail = this.#tail.slice(excess);
  }
}
