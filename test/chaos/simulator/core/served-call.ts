import { pino } from "pino";
import { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import type { CallContext } from "../../../../services/common/grpc/call-context.ts";
import type { CallOptions } from "../../../../services/common/grpc/client-options.ts";
import type { CallerIdentity } from "./caller-identity.ts";
import type { Host, Network } from "./network.ts";

const silent = pino({ level: "silent" });

/** A call as its server sees it: who asks, and a signal that fires when nobody waits for the answer any more. */
export class ServedCall {
  readonly context: CallContext;
  readonly #network: Network;
  readonly #caller: CallerIdentity;
  readonly #host: Host;
  readonly #gone = new AbortController();
  readonly #disposers: (() => void)[] = [];
  #isOver = false;

  constructor(
    network: Network,
    caller: CallerIdentity,
    host: Host,
    options: CallOptions,
    leftMs = Number.POSITIVE_INFINITY,
  ) {
    this.#network = network;
    this.#caller = caller;
    this.#host = host;
    this.context = contextOf(caller, options, this.#gone.signal);
    this.#disposers.push(caller.process.onDeath(() => this.cancelFromClient()));
    if (!Number.isFinite(leftMs)) return;
    // The deadline travels with the call.
    const timer = host.process.timer(leftMs, () => this.#cancel("DEADLINE_EXCEEDED"));
    this.#disposers.push(() => timer.clear());
  }

  /** Tells the client's end that the server died while it served this. */
  onServerDeath(hear: () => void): void {
    this.#disposers.push(
      this.#host.process.onDeath(() => {
        if (!this.#isOver) hear();
        this.#isOver = true;
      }),
    );
  }

  /** The client went away; the server hears of it a little later. */
  cancelFromClient(): void {
    if (this.#isOver) return;
    const fate = this.#network.fateOf(this.#caller.process.name, this.#host.process.name);
    const inMs = fate.kind === "arrives" ? fate.inMs : 20_000;
    const { time } = this.#network;
    time.at(time.now + inMs, () => this.#host.process.deliver(() => this.#cancel("CANCELLED")));
  }

  /** The handler has ended; `then` answers, if anybody still waits. */
  end(then: () => void): void {
    const wasOver = this.#isOver;
    this.#isOver = true;
    for (const dispose of this.#disposers) dispose();
    if (!wasOver) then();
  }

  #cancel(code: "CANCELLED" | "DEADLINE_EXCEEDED"): void {
    if (!this.#isOver)
      this.#gone.abort(new GanglionError({ code, reason: code, message: "the caller is gone" }));
  }
}

function contextOf(caller: CallerIdentity, options: CallOptions, signal: AbortSignal): CallContext {
  const { spiffeId, role } = caller;
  const metadata = {
    getMap: () => ({ ...options.metadata }),
    get: (key: string) => {
      const value = options.metadata?.[key];
      return value === undefined ? [] : [value];
    },
  };
  return {
    signal,
    deadlineMs: Number.POSITIVE_INFINITY,
    traceparent: "",
    principal: {
      role,
      spiffeId,
      instance: caller.process.name,
      workspaceId: caller.workspaceId,
      keyId: null,
      peerSpiffeId: spiffeId,
    },
    metadata: metadata as unknown as CallContext["metadata"],
    log: silent,
    traceId: "",
    path: "",
    peer: caller.process.name,
    note: () => {},
  };
}
