import { isAbsolute, resolve } from "node:path";

/** How one setting is read. `parse` throws an Error whose message says what is wanted. */
export interface Field<T> {
  parse: (text: string) => T;
  /** Used when the variable is absent; without it the setting is required. */
  default?: () => T;
  /** One line for --help. */
  help: string;
  /** Value is shown as "[set]" by --print-config. */
  secret?: boolean;
}

/** Settings by variable name. */
export type Fields = Record<string, Field<unknown>>;

/** What loadConfig returns for a set of fields. */
export type ConfigOf<F extends Fields> = { [K in keyof F]: F[K] extends Field<infer T> ? T : never };

/** Text of at most 4096 characters. */
export function text(help: string, fallback?: string): Field<string> {
  return field(help, fallback, (value) => {
    if (value.length > 4096) throw new Error("must be at most 4096 characters");
    return value;
  });
}

/** A path; relative ones are made absolute at start. */
export function path(help: string, fallback?: string): Field<string> {
  return field(help, fallback, (value) => (isAbsolute(value) ? value : resolve(value)));
}

/** host:port; port 0 lets the system choose where the setting is a place to listen. */
export function hostPort(help: string, fallback?: string): Field<string> {
  return field(help, fallback, parseHostPort);
}

/** Comma-separated host:port list. */
export function hostPorts(help: string, fallback?: string): Field<string[]> {
  return field(help, fallback === undefined ? undefined : splitList(fallback), (value) =>
    splitList(value).map(parseHostPort),
  );
}

/** Comma-separated host:port list with at least one entry: the replicas of a service. */
export function replicas(help: string, fallback?: string): Field<string[]> {
  const list = hostPorts(`${help}; several replicas comma-separated`, fallback);
  return {
    ...list,
    parse: (value) => {
      const addresses = list.parse(value);
      if (addresses.length === 0) throw new Error("must name at least one host:port");
      return addresses;
    },
  };
}

/** A whole number within bounds. */
export function integer(
  help: string,
  bounds: { min: number; max: number },
  fallback?: number,
): Field<number> {
  return field(help, fallback, (value) => {
    const number = Number(value);
    if (!/^-?\d{1,15}$/.test(value) || number < bounds.min || number > bounds.max) {
      throw new Error(`must be a whole number from ${bounds.min} to ${bounds.max}`);
    }
    return number;
  });
}

/** true or false, nothing else. */
export function flag(help: string, fallback?: boolean): Field<boolean> {
  return field(help, fallback, (value) => {
    if (value !== "true" && value !== "false") throw new Error("must be true or false");
    return value === "true";
  });
}

/** One of a closed set. */
export function choice<const T extends string>(help: string, of: readonly T[], fallback?: T): Field<T> {
  return field(help, fallback, (value) => {
    if (!of.includes(value as T)) throw new Error(`must be one of ${of.join(", ")}`);
    return value as T;
  });
}

/** An http or https URL without credentials in it. */
export function url(help: string, fallback?: string): Field<string> {
  return field(help, fallback, (value) => {
    const parsed = URL.canParse(value) ? new URL(value) : undefined;
    if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.username || parsed.password) {
      throw new Error("must be an http or https URL without user name and password");
    }
    return value;
  });
}

/** Makes a field optional: absent or empty reads as undefined. */
export function optional<T>(of: Field<T>): Field<T | undefined> {
  return { ...of, parse: (value) => (value === "" ? undefined : of.parse(value)), default: () => undefined };
}

function field<T>(help: string, fallback: T | undefined, parse: (value: string) => T): Field<T> {
  return fallback === undefined ? { help, parse } : { help, parse, default: () => fallback };
}

function splitList(value: string): string[] {
  return value
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function parseHostPort(value: string): string {
  const match = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})$/.exec(value);
  if (!match || Number(match[2]) > 65535) throw new Error("must be host:port");
  return value;
}
