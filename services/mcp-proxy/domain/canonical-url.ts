/** A URL of a destination in normal form and its parts. */
export interface Destination {
  /** Scheme and host in lower case, without default port and trailing slash. */
  url: string;
  scheme: "http" | "https";
  /** Name or address as it is dialled; IPv6 without brackets. */
  host: string;
  port: number;
  /** Scheme, host and port, as audit records name it. */
  origin: string;
}

const MAX_CHARS = 2048;
// Whitespace and control characters are dropped or rewritten by URL parsers, and a backslash is read as a slash.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
const SUSPECT = /[\u0000-\u0020\u007f\\]/;

/**
 * Parses a destination. Undefined when it is not an http or https URL, or not one that everybody reads the same way:
 * user names, fragments, whitespace and backslashes are refused rather than cleaned.
 */
export function parseDestination(text: string): Destination | undefined {
  if (text.length === 0 || text.length > MAX_CHARS || SUSPECT.test(text) || !URL.canParse(text))
    return undefined;
  const url = new URL(text);
  const scheme = url.protocol.slice(0, -1);
  if (scheme !== "http" && scheme !== "https") return undefined;
  if (url.username !== "" || url.password !== "" || text.includes("#") || url.hostname === "")
    return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  if (host === "") return undefined;
  const port = url.port === "" ? (scheme === "https" ? 443 : 80) : Number(url.port);
  const path = url.pathname.replace(/\/+$/, "");
  const hostPart = host.includes(":") ? `[${host}]` : host;
  const portPart = url.port === "" ? "" : `:${url.port}`;
  return {
    url: `${scheme}://${hostPart}${portPart}${path}${url.search}`,
    scheme,
    host,
    port,
    origin: `${scheme}://${hostPart}:${port}`,
  };
}
