import {
  type HealthCheckResponse,
  HealthService,
  HealthCheckResponse_ServingStatus as Status,
} from "../../gen/grpc/health/v1/health.ts";
import { GanglionError } from "../errors/ganglion-error.ts";
import { type Implementation, implement, serverStream, unary } from "./handlers.ts";

/** Health of a server and of each service on it, as grpc.health.v1 tells it. */
export class Health {
  readonly #services: ReadonlySet<string>;
  readonly #watchers = new Set<() => void>();
  #serving = false;

  constructor(services: Iterable<string>) {
    this.#services = new Set(["", ...services]);
  }

  /** Switches all services at once: one process is ready as a whole or not. */
  setServing(serving: boolean): void {
    if (serving === this.#serving) return;
    this.#serving = serving;
    for (const wake of [...this.#watchers]) wake();
  }

  /** The service to add to a server. */
  implementation(): Implementation {
    return implement(HealthService, {
      check: unary(async ({ service }) => {
        if (!this.#services.has(service)) throw unknownService();
        return { status: this.#status(service) };
      }),
      list: unary(async () => ({
        statuses: Object.fromEntries(
          [...this.#services].map((name) => [name, { status: this.#status(name) }]),
        ),
      })),
      watch: serverStream(({ service }, ctx) => this.#watch(service, ctx.signal)),
    });
  }

  async *#watch(service: string, signal: AbortSignal): AsyncGenerator<HealthCheckResponse> {
    let told: Status | undefined;
    while (!signal.aborted) {
      const now = this.#status(service);
      if (now !== told) {
        told = now;
        yield { status: now };
        continue;
      }
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#watchers.delete(wake);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        this.#watchers.add(wake);
        signal.addEventListener("abort", wake);
      });
    }
  }

  #status(service: string): Status {
    if (!this.#services.has(service)) return Status.SERVICE_UNKNOWN;
    return this.#serving ? Status.SERVING : Status.NOT_SERVING;
  }
}

function unknownService(): GanglionError {
  return new GanglionError({
    code: "NOT_FOUND",
    reason: "SERVICE_UNKNOWN",
    message: "this server has no such service",
  });
}
