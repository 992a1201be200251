// A door that refuses every token must not make the proxy issue tokens without end.
const ANEW_AFTER_MS = 5_000;

/**
 * HandToken is what names one hand at the proxy's doors. It is asked for at the hand's first connection, stays in this
 * process, and is asked for again when a door has refused it.
 */
export class HandToken {
  readonly #issue: () => Promise<string>;
  readonly #now: () => number;
  #token: Promise<string> | undefined;
  #issuedAt = Number.NEGATIVE_INFINITY;

  constructor(issue: () => Promise<string>, now: () => number) {
    this.#issue = issue;
    this.#now = now;
  }

  /** get resolves with the token; connections that come together wait for the same one. */
  get(): Promise<string> {
    if (this.#token !== undefined) return this.#token;
    const token = this.#issue();
    this.#token = token;
    this.#issuedAt = this.#now();
    token.catch(() => {
      if (this.#token === token) this.#token = undefined;
    });
    return token;
  }

  /** refused forgets the token, unless it is a new one. */
  refused(): void {
    if (this.#now() - this.#issuedAt >= ANEW_AFTER_MS) this.#token = undefined;
  }
}
