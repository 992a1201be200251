/** What has to be stopped and removed, last things first, also when the run is interrupted. */
export class CleanUps {
  readonly #pending: (() => Promise<void> | void)[] = [];
  readonly #onProblem: (error: unknown) => void;

  constructor(onProblem: (error: unknown) => void) {
    this.#onProblem = onProblem;
  }

  add(cleanUp: () => Promise<void> | void): void {
    this.#pending.push(cleanUp);
  }

  /** Runs and forgets all of them; one that fails does not keep the others. */
  async run(): Promise<void> {
    for (let next = this.#pending.pop(); next; next = this.#pending.pop()) {
      try {
        await next();
      } catch (error) {
        this.#onProblem(error);
      }
    }
  }
}
