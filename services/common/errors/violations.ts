import { GanglionError, type Violation } from "./ganglion-error.ts";

/** Rules for a string field. Lengths are in UTF-16 units unless they end in Bytes. */
export interface StringRules {
  required?: boolean;
  maxLength?: number;
  maxBytes?: number;
  pattern?: RegExp;
  /** What the pattern means, for the message: "an id that starts with sesn_". */
  patternMeans?: string;
  oneOf?: readonly string[];
}

/** Rules for a whole number field. */
export interface IntegerRules {
  required?: boolean;
  min?: number | bigint;
  max?: number | bigint;
}

/**
 * Collects everything that is wrong with a request, so that the caller hears of all fields
 * at once. Field names are proto names ("session_id", "events[3].id").
 */
export class Violations {
  readonly #found: Violation[] = [];

  /** Adds a violation. */
  add(field: string, description: string): this {
    this.#found.push({ field, description });
    return this;
  }

  /** Adds a violation unless the condition holds. */
  check(condition: boolean, field: string, description: string): this {
    return condition ? this : this.add(field, description);
  }

  /** Checks a string field; an empty one breaks only `required`. */
  string(field: string, value: string, rules: StringRules): this {
    if (value === "") return this.check(!rules.required, field, "is required");
    if (rules.maxLength !== undefined && value.length > rules.maxLength) {
      return this.add(field, `is longer than ${rules.maxLength} characters`);
    }
    if (rules.maxBytes !== undefined && Buffer.byteLength(value) > rules.maxBytes) {
      return this.add(field, `is larger than ${rules.maxBytes} bytes`);
    }
    if (rules.pattern && !rules.pattern.test(value)) {
      return this.add(field, `must be ${rules.patternMeans ?? `of the form ${rules.pattern.source}`}`);
    }
    if (rules.oneOf && !rules.oneOf.includes(value)) {
      return this.add(field, `must be one of ${rules.oneOf.join(", ")}`);
    }
    return this;
  }

  /** Checks a whole number; `undefined` breaks only `required`. */
  integer(field: string, value: number | bigint | undefined, rules: IntegerRules): this {
    if (value === undefined) return this.check(!rules.required, field, "is required");
    if (rules.min !== undefined && value < rules.min) return this.add(field, `must be at least ${rules.min}`);
    if (rules.max !== undefined && value > rules.max) return this.add(field, `must be at most ${rules.max}`);
    return this;
  }

  /** Checks the size of a bytes field. */
  bytes(field: string, value: Uint8Array, rules: { required?: boolean; maxBytes?: number }): this {
    if (value.length === 0) return this.check(!rules.required, field, "is required");
    if (rules.maxBytes !== undefined && value.length > rules.maxBytes) {
      return this.add(field, `is larger than ${rules.maxBytes} bytes`);
    }
    return this;
  }

  /** Checks the number of entries of a repeated field or map. */
  count(field: string, count: number, rules: { min?: number; max?: number }): this {
    if (rules.min !== undefined && count < rules.min)
      return this.add(field, `needs at least ${rules.min} entries`);
    if (rules.max !== undefined && count > rules.max)
      return this.add(field, `may have at most ${rules.max} entries`);
    return this;
  }

  /** Checks that a message field or oneof is set. */
  present(field: string, value: unknown): this {
    return this.check(value !== undefined && value !== null, field, "is required");
  }

  /** True when nothing is wrong so far. */
  get ok(): boolean {
    return this.#found.length === 0;
  }

  /** Throws INVALID_ARGUMENT/INVALID_FIELD naming every field, when anything is wrong. */
  throwIfAny(): void {
    const first = this.#found[0];
    if (!first) return;
    const more = this.#found.length > 1 ? ` (and ${this.#found.length - 1} more)` : "";
    throw new GanglionError({
      code: "INVALID_ARGUMENT",
      reason: "INVALID_FIELD",
      message: `${first.field} ${first.description}${more}`,
      metadata: { field: first.field },
      violations: this.#found,
    });
  }
}
