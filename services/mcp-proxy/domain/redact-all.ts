import { createRedactor, type Redactor } from "./redactor.ts";

/** A secret and what stands in its place. */
export interface Redacted {
  value: string;
  label: string;
}

/** Removes several secrets from a stream of bytes; of one that begins like another the longer wins (case A064). */
export function createRedactors(secrets: readonly Redacted[]): Redactor {
  const chain = [...secrets]
    .sort((a, b) => b.value.length - a.value.length)
    .map(({ value, label }) => createRedactor(value, label));
  return {
    push: (chunk) => chain.reduce((bytes, redactor) => redactor.push(bytes), chunk),
    flush: () => {
      let rest: Buffer = Buffer.alloc(0);
      for (const redactor of chain) rest = Buffer.concat([redactor.push(rest), redactor.flush()]);
      return rest;
    },
    get count() {
      return chain.reduce((sum, { count }) => sum + count, 0);
    },
  };
}

/** A short text without the secrets, and how often one was found. */
export function redactText(text: string, secrets: readonly Redacted[]): { text: string; redactions: number } {
  const redactor = createRedactors(secrets);
  const head = redactor.push(Buffer.from(text, "latin1"));
  const clean = Buffer.concat([head, redactor.flush()]).toString("latin1");
  return { text: clean, redactions: redactor.count };
}
