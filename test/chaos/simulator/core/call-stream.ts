import type { CallOptions } from "../../../../services/common/grpc/client-options.ts";
import type { ServerStream } from "../../../../services/common/grpc/handlers.ts";
import { cancelled, unreachable } from "./network.ts";
import type { Route } from "./route.ts";
import { ServedCall } from "./served-call.ts";

/**
 * A call that is answered with a stream. Messages come in order; a message that is lost breaks the connection, so that
 * nothing after it arrives either.
 */
export async function* callStream(
  route: Route,
  request: unknown,
  options: CallOptions,
): AsyncGenerator<unknown, void, undefined> {
  route.network.time.count(`${route.caller.process.name} ${route.path}`);
  const signals = [options.parent?.signal, options.signal].filter((signal) => signal !== undefined);
  const fired = signals.find((signal) => signal.aborted);
  if (fired) throw cancelled(fired);
  const incoming = new Incoming(route);
  const abort = (): void => {
    const signal = signals.find(({ aborted }) => aborted);
    if (signal) incoming.fail(cancelled(signal));
  };
  for (const signal of signals) signal.addEventListener("abort", abort);
  incoming.open(request, options);
  try {
    yield* incoming.messages();
  } finally {
    for (const signal of signals) signal.removeEventListener("abort", abort);
    incoming.leave();
  }
}

class Incoming {
  readonly #route: Route;
  readonly #queue: unknown[] = [];
  #served: ServedCall | undefined;
  #wake: (() => void) | undefined;
  #failure: unknown;
  #isOver = false;
  #isLeft = false;
  #isBroken = false;
  #lastArrival = 0;

  constructor(route: Route) {
    this.#route = { ...route, to: route.network.pickHost(route.to) };
  }

  open(request: unknown, options: CallOptions): void {
    const { network, caller, to, service, path } = this.#route;
    const fate = network.fateOf(caller.process.name, to);
    if (fate.kind === "lost") {
      this.#breakIn(fate.brokenInMs);
      return;
    }
    network.time.at(network.time.now + fate.inMs, () => {
      const host = network.hostAt(to);
      const handler = host?.handlers.get(path) as ServerStream<unknown, unknown> | undefined;
      if (!host || !handler || this.#isLeft || !caller.process.isAlive) {
        this.#breakIn(1);
        return;
      }
      const served = new ServedCall(network, caller, host, options);
      this.#served = served;
      served.onServerDeath(() => this.#breakIn(network.random.between(1, 50)));
      host.process.deliver(() => {
        const serve = async (): Promise<void> => {
          for await (const message of handler.run(request, served.context)) {
            if (this.#isBroken || served.context.signal.aborted) break;
            this.#send(() => this.#queue.push(message));
          }
        };
        serve().then(
          () => served.end(() => this.#send(() => this.#end(undefined))),
          (error: unknown) => {
            const known = network.overTheWire(error, service);
            served.end(() => this.#send(() => this.#end(known)));
          },
        );
      });
    });
  }

  async *messages(): AsyncGenerator<unknown, void, undefined> {
    for (;;) {
      while (this.#queue.length > 0) {
        // A reader that was cancelled gets nothing more, whatever had arrived.
        if (this.#failure !== undefined) throw this.#failure;
        yield this.#queue.shift();
      }
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#isOver) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  fail(error: unknown): void {
    this.#end(error);
  }

  leave(): void {
    this.#isLeft = true;
    this.#isBroken = true;
    this.#served?.cancelFromClient();
  }

  #send(take: () => void): void {
    const { network, caller, to } = this.#route;
    if (this.#isBroken) return;
    const fate = network.fateOf(to, caller.process.name);
    if (fate.kind === "lost") {
      this.#breakIn(fate.brokenInMs);
      return;
    }
    this.#lastArrival = Math.max(this.#lastArrival, network.time.now + fate.inMs);
    network.time.at(this.#lastArrival, () =>
      caller.process.deliver(() => {
        if (this.#isOver) return;
        take();
        this.#wake?.();
      }),
    );
  }

  #breakIn(ms: number): void {
    const { network, caller, service } = this.#route;
    if (this.#isBroken) return;
    this.#isBroken = true;
    const at = Math.max(this.#lastArrival, network.time.now + ms);
    network.time.at(at, () => caller.process.deliver(() => this.#end(unreachable(service))));
  }

  #end(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#failure = error;
    this.#wake?.();
  }
}
