import type { VaultClient } from "./vault-client.ts";
import { VaultFailure } from "./vault-failure.ts";

/** The login that the supervisor handed over. */
export interface VaultBootstrap {
  role_id: string;
  wrapped_secret_id: string;
}

/** mcp-proxy's own Vault token. */
export interface ProxyLogin {
  /** The token as it is now. Never kept, logged or passed on by those who ask. */
  token(): string;
  /** False once renewal has failed for good. */
  isAlive(): boolean;
  /** Vault refused a call with the token: finds out now whether the token is still good, at most every few seconds. */
  suspect(): void;
  close(): void;
}

/** What the owner wants to hear of. */
export interface LoginEvents {
  /** The token is gone or about to be; only a new wrapped secret id helps. */
  onLost: (failure: VaultFailure | undefined) => void;
  onRenewalFailed: (failure: VaultFailure) => void;
}

/** The wrapped secret id had been opened by somebody else: that somebody may have the login (case A123). */
export class BootstrapCompromised extends Error {
  override readonly name = "BootstrapCompromised";
  constructor() {
    super("the wrapped secret id was opened before or has expired");
  }
}

const LEAST_LIFE_MS = 5000;
const RETRY_MS = 1000;
const SUSPECT_EVERY_MS = 2000;

/**
 * Opens the wrapped secret id, once, logs in, and keeps the token alive: renewed at about two thirds of its life, a
 * little apart from other replicas; a renewal that fails is tried again until the token ends (case A119).
 */
export async function logIn(
  client: VaultClient,
  bootstrap: VaultBootstrap,
  events: LoginEvents,
): Promise<ProxyLogin> {
  const secretId = await unwrap(client, bootstrap.wrapped_secret_id);
  const { auth } = await client.write("auth/approle/login", {
    role_id: bootstrap.role_id,
    secret_id: secretId,
  });
  const token = auth?.client_token;
  if (typeof token !== "string" || token === "") throw new VaultFailure("malformed");

  let endsAt = Date.now() + secondsOf(auth?.lease_duration) * 1000;
  let isAlive = true;
  let timer: NodeJS.Timeout | undefined;
  let suspectedAt = 0;
  const lose = (failure?: VaultFailure) => {
    if (!isAlive) return;
    isAlive = false;
    events.onLost(failure);
  };
  const plan = (delayMs: number) => {
    // One that was suspected while a renewal was under way must not be renewed in two rounds for ever.
    clearTimeout(timer);
    timer = setTimeout(() => void renew(), Math.min(delayMs, 2 ** 31 - 1));
    timer.unref();
  };
  const renew = async () => {
    try {
      const answer = await client.write("auth/token/renew-self", {}, token);
      const lifeMs = secondsOf(answer.auth?.lease_duration) * 1000;
      endsAt = Date.now() + lifeMs;
      // At its longest life a renewal answers less and less; leave while there is still time to be replaced.
      if (lifeMs < LEAST_LIFE_MS) lose();
      else plan(renewalDelay(lifeMs));
    } catch (error) {
      const failure = error instanceof VaultFailure ? error : new VaultFailure("malformed");
      if (failure.kind === "denied" || Date.now() >= endsAt) return lose(failure);
      events.onRenewalFailed(failure);
      plan(Math.min(RETRY_MS * (0.5 + Math.random()), Math.max(100, (endsAt - Date.now()) / 2)));
    }
  };
  plan(renewalDelay(endsAt - Date.now()));
  return {
    token: () => token,
    isAlive: () => isAlive && Date.now() < endsAt,
    suspect: () => {
      if (!isAlive || Date.now() - suspectedAt < SUSPECT_EVERY_MS) return;
      suspectedAt = Date.now();
      clearTimeout(timer);
      void renew();
    },
    close: () => clearTimeout(timer),
  };
}

async function unwrap(client: VaultClient, wrapped: string): Promise<string> {
  try {
    const { data } = await client.write("sys/wrapping/unwrap", {}, wrapped);
    const secretId = data?.secret_id;
    if (typeof secretId === "string" && secretId !== "") return secretId;
  } catch (error) {
    const kind = error instanceof VaultFailure ? error.kind : "malformed";
    if (kind !== "bad_request" && kind !== "denied" && kind !== "not_found") throw error;
  }
  throw new BootstrapCompromised();
}

function renewalDelay(lifeMs: number): number {
  return lifeMs * (0.62 + Math.random() * 0.08);
}

function secondsOf(value: unknown): number {
  return typeof value === "number" && value > 0 ? value : 0;
}
