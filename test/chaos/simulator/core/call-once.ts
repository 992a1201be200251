import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import type { CallOptions } from "../../../../services/common/grpc/client-options.ts";
import type { Unary } from "../../../../services/common/grpc/handlers.ts";
import { pause } from "../../../../services/harness/driver/pause.ts";
import { cancelled, unreachable } from "./network.ts";
import type { Route } from "./route.ts";
import { ServedCall } from "./served-call.ts";

const DEFAULT_MS = 30_000;
const NEVER = new AbortController().signal;

/** A unary call, tried again as the real channel does: idempotent methods, and whoever waits for a server. */
export async function callOnce(route: Route, request: unknown, options: CallOptions): Promise<unknown> {
  route.network.time.count(`${route.caller.process.name} ${route.path}`);
  const signals = [options.parent?.signal, options.signal].filter((signal) => signal !== undefined);
  const until = performance.now() + (options.timeoutMs ?? DEFAULT_MS);
  for (let attempt = 1; ; attempt++) {
    const fired = signals.find((signal) => signal.aborted);
    if (fired) throw cancelled(fired);
    try {
      return await new Attempt(route, request, options, signals, until - performance.now()).answer;
    } catch (error) {
      const isAway = GanglionError.is(error) && error.code === "UNAVAILABLE";
      const mayTry = (route.isIdempotent && attempt < 4) || options.waitForReady === true;
      if (!isAway || !mayTry || performance.now() >= until) throw error;
      const backoffMs = Math.min(100 * 2 ** (attempt - 1), 1000) * route.network.random.next();
      await pause(Math.min(backoffMs, until - performance.now()), signals[0] ?? NEVER);
    }
  }
}

/** One try of a unary call. */
class Attempt {
  readonly answer: Promise<unknown>;
  readonly #route: Route;
  readonly #served: ServedCall[] = [];
  #settle: { resolve: (value: unknown) => void; reject: (error: unknown) => void };
  #isOver = false;
  #dispose: () => void = () => {};

  constructor(
    route: Route,
    request: unknown,
    options: CallOptions,
    signals: readonly AbortSignal[],
    leftMs: number,
  ) {
    this.#route = { ...route, to: route.network.pickHost(route.to) };
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.answer = promise;
    this.#settle = { resolve, reject };
    const { process } = route.caller;
    const abort = (): void => {
      const fired = signals.find((signal) => signal.aborted);
      if (fired) this.#giveUp(cancelled(fired));
    };
    for (const signal of signals) signal.addEventListener("abort", abort);
    const timer = Number.isFinite(leftMs)
      ? process.timer(leftMs, () => this.#giveUp(tooLate(route.service)))
      : undefined;
    this.#dispose = () => {
      timer?.clear();
      for (const signal of signals) signal.removeEventListener("abort", abort);
    };
    this.#send(request, options, leftMs);
    const { network, isIdempotent } = route;
    if (isIdempotent && network.random.chance(network.weather.duplicate))
      this.#send(request, options, leftMs);
  }

  #send(request: unknown, options: CallOptions, leftMs: number): void {
    const { network, caller, to, service } = this.#route;
    const fate = network.fateOf(caller.process.name, to);
    if (fate.kind === "lost") {
      this.#fail(unreachable(service), fate.brokenInMs);
      return;
    }
    network.time.at(network.time.now + fate.inMs, () => this.#arrive(request, options, leftMs));
  }

  #arrive(request: unknown, options: CallOptions, leftMs: number): void {
    const { network, caller, to, service, path } = this.#route;
    const host = network.hostAt(to);
    const handler = host?.handlers.get(path) as Unary<unknown, unknown> | undefined;
    if (!host || !handler || !caller.process.isAlive) {
      this.#fail(unreachable(service), 1);
      return;
    }
    const served = new ServedCall(network, caller, host, options, leftMs);
    this.#served.push(served);
    served.onServerDeath(() => this.#fail(unreachable(service), network.random.between(1, 50)));
    host.process.deliver(() => {
      handler.run(request, served.context).then(
        (value) => served.end(() => this.#reply(() => this.#settle.resolve(value), "ok")),
        (error: unknown) => {
          const known = network.overTheWire(error, service);
          served.end(() => this.#reply(() => this.#settle.reject(known), known.reason));
        },
      );
    });
  }

  #reply(settle: () => void, word: string): void {
    const { network, caller, to, service, path } = this.#route;
    const fate = network.fateOf(to, caller.process.name);
    const lost = fate.kind === "lost" ? " (lost)" : "";
    network.trace.say(
      `${caller.process.name} > ${to} ${path.slice(path.lastIndexOf("/") + 1)} ${word}${lost}`,
    );
    if (fate.kind === "lost") {
      this.#fail(unreachable(service), fate.brokenInMs);
      return;
    }
    network.time.at(network.time.now + fate.inMs, () => caller.process.deliver(() => this.#finish(settle)));
  }

  #fail(error: GanglionError, inMs: number): void {
    const { network, caller } = this.#route;
    const fail = (): void => this.#finish(() => this.#settle.reject(error));
    network.time.at(network.time.now + inMs, () => caller.process.deliver(fail));
  }

  #giveUp(error: GanglionError): void {
    if (this.#isOver) return;
    this.#finish(() => this.#settle.reject(error));
    for (const served of this.#served) served.cancelFromClient();
  }

  #finish(settle: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#dispose();
    settle();
  }
}

function tooLate(service: string): GanglionError {
  return new GanglionError({
    code: "DEADLINE_EXCEEDED",
    reason: "DEADLINE_EXCEEDED",
    message: `${service} did not answer in time`,
    domain: `ganglion.${service}`,
  });
}
