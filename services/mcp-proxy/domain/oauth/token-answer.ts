import { isSendable } from "../../../common/seal/secret-form.ts";

/** What a token endpoint granted. */
export interface GrantedTokens {
  accessToken: string;
  /** Absent when the one that was used stays good. */
  refreshToken?: string;
  /** RFC 3339; absent when the server does not say. */
  expiresAt?: string;
  /** Absent when it is what was asked for. */
  scope?: string;
}

/** Least length of a token that a token endpoint may give out: a shorter one is none. */
const MIN_TOKEN_BYTES = 8;
const MAX_LIFE_S = 10 * 365 * 86_400;

/**
 * Reads a token endpoint's answer of status 200; undefined when there is no usable access token in it. Read leniently on
 * purpose: a refresh token may have been spent for this answer, and a missing `token_type`, a number written as text or an
 * ID token that nobody asked for is no reason to lose what came for it.
 */
export function readTokenAnswer(body: string, now: number): GrantedTokens | undefined {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (typeof json !== "object" || json === null) return undefined;
  const { access_token: access, refresh_token: refresh, token_type: type, scope } = json as Fields;
  if (!isToken(access)) return undefined;
  // Other kinds of tokens need proofs that we do not make.
  if (typeof type === "string" && ["dpop", "mac", "n_a"].includes(type.toLowerCase())) return undefined;
  const seconds = Number((json as Fields).expires_in ?? Number.NaN);
  const isLife = Number.isFinite(seconds) && seconds > 0 && seconds <= MAX_LIFE_S;
  return {
    accessToken: access,
    ...(typeof refresh === "string" && isSendable(refresh) ? { refreshToken: refresh } : {}),
    ...(isLife ? { expiresAt: new Date(now + Math.floor(seconds) * 1000).toISOString() } : {}),
    ...(typeof scope === "string" && scope !== "" && scope.length <= 4096 && isSendable(scope)
      ? { scope }
      : {}),
  };
}

/** The `error` of an answer that grants nothing: a word of RFC 6749, or nothing. */
export function readTokenError(body: string): string {
  try {
    const { error } = JSON.parse(body) as { error?: unknown };
    return typeof error === "string" && /^[a-z_]{1,64}$/.test(error) ? error : "";
  } catch {
    return "";
  }
}

/** What an error may say of an answer that grants nothing: its status and that word. */
export function refusalMetadata({ status, body }: { status: number; body: string }): Record<string, string> {
  const error = readTokenError(body);
  return { upstream_status: String(status), ...(error ? { oauth_error: error } : {}) };
}

type Fields = Record<string, unknown>;

function isToken(value: unknown): value is string {
  return typeof value === "string" && value.length >= MIN_TOKEN_BYTES && isSendable(value);
}
