import { createRedactorOf, type Redactor } from "./redactor.ts";
import { needlesOf } from "./secret-forms.ts";

/** A secret and what stands in its place. */
export interface Redacted {
  value: string;
  label: string;
}

/** Removes several secrets from a stream of bytes; of one that begins like another the longer wins (case A064). */
export function createRedactors(secrets: readonly Redacted[]): Redactor {
  return redactorsFor(secrets)();
}

/** Makes such redactors, as many as are asked for, one for each text that is searched by itself. */
export function redactorsFor(secrets: readonly Redacted[]): () => Redactor {
  const forms = [...secrets]
    .sort((a, b) => b.value.length - a.value.length)
    .map(({ value, label }) => ({ needles: needlesOf(value), label }));
  return () => chainOf(forms.map(({ needles, label }) => createRedactorOf(needles, label)));
}

function chainOf(chain: readonly Redactor[]): Redactor {
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

/** A short text without what the redactor looks for, and how often that was found; it is of no use for another text then. */
export function redactText(text: string, redactor: Redactor): { text: string; redactions: number } {
  const head = redactor.push(Buffer.from(text, "latin1"));
  const clean = Buffer.concat([head, redactor.flush()]).toString("latin1");
  return { text: clean, redactions: redactor.count };
}
