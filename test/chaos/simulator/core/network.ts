import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import type { AnyHandler } from "../../../../services/common/grpc/handlers.ts";
import type { Random } from "../../../kit/random.ts";
import type { Trace } from "./trace.ts";
import type { SimProcess, VirtualTime } from "./virtual-time.ts";

/** How bad the network is. */
export interface Weather {
  /** Probability that a message is lost and its connection with it. */
  loss: number;
  /** Probability that a request arrives twice; methods that the contract calls idempotent only. */
  duplicate: number;
  /** Probability that a message is slow. */
  slow: number;
  /** How slow, at most, in milliseconds. */
  slowMs: number;
}

/** A process that answers, under a name that outlives it. */
export interface Host {
  readonly process: SimProcess;
  /** Part of the mesh that it is, for errors. */
  readonly service: string;
  /** By "Service/Method". */
  readonly handlers: ReadonlyMap<string, AnyHandler>;
}

/** What becomes of one message. */
export type Fate = { kind: "arrives"; inMs: number } | { kind: "lost"; brokenInMs: number };

/** Messages between processes: late, lost, twice, out of order, or not at all while a link is cut. */
export class Network {
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly random: Random;
  readonly weather: Weather = { loss: 0, duplicate: 0, slow: 0, slowMs: 0 };
  /** What no weather does: handlers that broke because a part of the simulation lacks something. */
  readonly faults = new Set<string>();
  readonly #hosts = new Map<string, Host>();
  readonly #shared = new Map<string, readonly string[]>();
  /** Until when a link is cut, by the names at its ends. */
  readonly #cuts = new Map<string, number>();

  constructor(time: VirtualTime, trace: Trace, random: Random) {
    this.time = time;
    this.trace = trace;
    this.random = random;
  }

  /** Answers under a name from now on. */
  listen(name: string, host: Host): void {
    this.#hosts.set(name, host);
  }

  /** Makes a name stand for several hosts. */
  share(name: string, hosts: readonly string[]): void {
    this.#shared.set(name, hosts);
  }

  /** The host that a connection to a name goes to: one that lives, if any does. */
  pickHost(name: string): string {
    const hosts = this.#shared.get(name);
    if (!hosts) return name;
    const living = hosts.filter((host) => this.hostAt(host));
    return this.random.pick(living.length > 0 ? living : hosts);
  }

  /** Who answers under a name; undefined = nobody, or somebody dead. */
  hostAt(name: string): Host | undefined {
    const host = this.#hosts.get(name);
    return host?.process.isAlive ? host : undefined;
  }

  /** A handler's error as it arrives at the client: named by the part that answered. */
  overTheWire(error: unknown, service: string): GanglionError {
    const domain = `ganglion.${service}`;
    if (error instanceof TypeError) this.faults.add(`${service} broke: ${error.stack}`);
    if (!(error instanceof GanglionError)) {
      return new GanglionError({
        code: "INTERNAL",
        reason: "INTERNAL",
        message: "internal error",
        domain,
        cause: error,
      });
    }
    const { code, reason, message, metadata, retryAfterMs } = error;
    return new GanglionError({
      code,
      reason,
      message,
      metadata: { ...metadata },
      domain: error.domain ?? domain,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });
  }

  /** Cuts the link between two names for a while. */
  cut(a: string, b: string, forMs: number): void {
    this.#cuts.set(linkOf(a, b), this.time.now + forMs);
  }

  /** From now on everything arrives. */
  heal(): void {
    this.#cuts.clear();
    Object.assign(this.weather, { loss: 0, duplicate: 0, slow: 0, slowMs: 0 });
  }

  /** Decides what becomes of a message. */
  fateOf(from: string, to: string): Fate {
    const { random } = this;
    const { loss, slow, slowMs } = this.weather;
    const inMs = random.chance(slow) ? random.between(5, slowMs) : random.between(0.1, 2);
    const cutForMs = (this.#cuts.get(linkOf(from, to)) ?? 0) - this.time.now;
    if (cutForMs > 0) {
      // Sent again by the transport once the link is whole, or the connection is given up.
      if (random.chance(0.4)) return { kind: "arrives", inMs: cutForMs + inMs };
      return { kind: "lost", brokenInMs: random.between(20, 5000) };
    }
    if (random.chance(loss)) return { kind: "lost", brokenInMs: random.between(1, 1500) };
    return { kind: "arrives", inMs };
  }
}

function linkOf(a: string, b: string): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`;
}

/** A transport's failure, as a client reports it. */
export function unreachable(service: string): GanglionError {
  return new GanglionError({
    code: "UNAVAILABLE",
    reason: "UNREACHABLE",
    message: `${service} cannot be reached`,
    domain: `ganglion.${service}`,
  });
}

/** What a signal that fired means to a call. */
export function cancelled(signal: AbortSignal): GanglionError {
  if (signal.reason instanceof GanglionError) return signal.reason;
  return new GanglionError({
    code: "CANCELLED",
    reason: "CANCELLED",
    message: "the call was cancelled",
    cause: signal.reason,
  });
}
