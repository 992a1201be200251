/**
 * Whether another replica of the service may be listening. Each says now and then that it is here; one that has not been
 * heard of for as long as two of its heartbeats is taken to be gone. What that costs when it was only paused is known: its
 * feeds look at the heads by themselves every few seconds.
 */
export class OtherReplicas {
  readonly #patienceMs: number;
  readonly #now: () => number;
  #until = 0;

  constructor(patienceMs: number, now: () => number = () => performance.now()) {
    this.#patienceMs = patienceMs;
    this.#now = now;
  }

  get mayListen(): boolean {
    return this.#now() < this.#until;
  }

  /** Reckons with others for a while: nobody can have been heard yet. */
  assume(): void {
    this.#until = this.#now() + this.#patienceMs;
  }

  /** One was heard. Unexpected: nobody was reckoned with, so it was told nothing. */
  heard(): "expected" | "unexpected" {
    const wasExpected = this.mayListen;
    this.assume();
    return wasExpected ? "expected" : "unexpected";
  }
}
