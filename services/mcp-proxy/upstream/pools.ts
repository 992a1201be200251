import { isIP } from "node:net";
import { rootCertificates } from "node:tls";
import { buildConnector, type Dispatcher, Pool } from "undici";
import type { Destination } from "../domain/canonical-url.ts";
import type { ResolvedAddress } from "../domain/destination-policy.ts";
import { FacingClient } from "./facing-client.ts";
import { UpstreamFailure } from "./upstream-failure.ts";

/** Connections to upstreams. */
export interface UpstreamPools {
  /** Connections for one credential (or none) to one address; never shared with another credential (case A029). */
  get(
    destination: Destination,
    address: ResolvedAddress,
    credentialKey: string,
    keepAliveMs?: number,
  ): Dispatcher;
  close(): Promise<void>;
}

/** How long waits may be. */
export interface UpstreamLimits {
  connectMs: number;
  headersMs: number;
  bodyIdleMs: number;
}

const IDLE_MS = 120_000;
/** Where there are more than so many, those that were not used for a short while are closed: a hand can ask for any number. */
const MOST = 2000;
const IDLE_OF_MANY_MS = 10_000;
/** Short: a connection that the server has just closed makes the outcome of what is sent on it unknown. */
const KEEP_ALIVE_MS = 4000;

/**
 * Makes the pools. Each dials the one address that was checked, presents the destination's name in TLS and verifies it
 * against the public authorities and the operator's own. Proxy variables are unknown here, redirects are not followed.
 */
export function createPools(
  limits: UpstreamLimits,
  extraCa: string | undefined,
  { most = MOST, now = Date.now }: { most?: number; now?: () => number } = {},
): UpstreamPools {
  const pools = new Map<string, { pool: Pool; usedAt: number }>();
  const ca = extraCa === undefined ? undefined : [...rootCertificates, extraCa];
  const closeIdle = (idleMs: number) => {
    for (const [key, { pool, usedAt }] of pools) {
      if (usedAt > now() - idleMs || pool.stats.running > 0) continue;
      pools.delete(key);
      pool.close().catch(() => {});
    }
  };
  const sweep = setInterval(() => closeIdle(IDLE_MS), IDLE_MS / 4);
  sweep.unref();

  return {
    get: (destination, { address }, credentialKey, keepAliveMs = KEEP_ALIVE_MS) => {
      const key = `${credentialKey} ${destination.origin} ${address}`;
      const known = pools.get(key);
      if (known) {
        known.usedAt = now();
        return known.pool;
      }
      if (pools.size >= most) closeIdle(IDLE_OF_MANY_MS);
      const pool = new Pool(originOf(destination), {
        factory: (origin, options) =>
          new FacingClient(origin, options as ConstructorParameters<typeof FacingClient>[1]),
        connect: pinnedConnector(destination, address, limits.connectMs, ca),
        connections: 64,
        pipelining: 1,
        headersTimeout: limits.headersMs,
        bodyTimeout: limits.bodyIdleMs,
        // Where the server does not say how long it keeps a connection; what it says counts more.
        keepAliveTimeout: keepAliveMs,
        keepAliveMaxTimeout: 60_000,
        maxHeaderSize: 32_768,
      });
      pools.set(key, { pool, usedAt: now() });
      return pool;
    },
    close: async () => {
      clearInterval(sweep);
      await Promise.all([...pools.values()].map(({ pool }) => pool.destroy()));
      pools.clear();
    },
  };
}

function originOf({ scheme, host, port }: Destination): string {
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function pinnedConnector(
  { host }: Destination,
  address: string,
  timeout: number,
  ca: string[] | undefined,
): buildConnector.connector {
  const dial = buildConnector({ timeout, maxCachedSessions: 0, ...(ca ? { ca } : {}) });
  const servername = isIP(host) === 0 ? host : "";
  return (options, callback) => {
    dial({ ...options, hostname: address, servername }, (...result) => {
      const [error, socket] = result;
      // Only here is it certain that nothing was sent.
      if (error) callback(new UpstreamFailure("unreachable"), null);
      else callback(null, socket as NonNullable<typeof socket>);
    });
  };
}
