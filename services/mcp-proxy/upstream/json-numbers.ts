interface SourceContext {
  source?: string;
}

const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown };
const parseWithSource = JSON.parse as (
  text: string,
  reviver: (key: string, value: unknown, context: SourceContext) => unknown,
) => unknown;

/**
 * Parses JSON so that writing it again gives every number as it was written: 2^53 + 1 and 1.0 survive. Only for values
 * that are passed on, not calculated with.
 */
export function parseKeepingNumbers(text: string): unknown {
  return parseWithSource(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && JSON.stringify(value) !== source
      ? rawJSON(source)
      : value,
  );
}
