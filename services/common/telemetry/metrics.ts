import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** Metrics of one process. Rooms add their own to `registry`, named ganglion_<service>_<noun>_<unit>. */
export interface Metrics {
  registry: Registry;
  serverStarted: Counter<"grpc_service" | "grpc_method" | "grpc_type">;
  serverHandled: Counter<"grpc_service" | "grpc_method" | "grpc_type" | "grpc_code">;
  serverHandling: Histogram<"grpc_service" | "grpc_method" | "grpc_type">;
  serverSent: Counter<"grpc_service" | "grpc_method">;
  serverActive: Gauge<"grpc_service" | "grpc_method">;
  clientHandled: Counter<"grpc_service" | "grpc_method" | "grpc_code">;
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Makes the registry of a process with process, event-loop and gRPC metrics. */
export function createMetrics(service: string, instance: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ service, instance });
  // Brings process memory, CPU and nodejs_eventloop_lag_seconds.
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const method = ["grpc_service", "grpc_method"] as const;
  return {
    registry,
    serverStarted: new Counter({
      name: "grpc_server_started_total",
      help: "Calls started",
      labelNames: [...method, "grpc_type"],
      registers,
    }),
    serverHandled: new Counter({
      name: "grpc_server_handled_total",
      help: "Calls ended, by status code",
      labelNames: [...method, "grpc_type", "grpc_code"],
      registers,
    }),
    serverHandling: new Histogram({
      name: "grpc_server_handling_seconds",
      help: "Time from a call's start to its end",
      labelNames: [...method, "grpc_type"],
      buckets: SECONDS,
      registers,
    }),
    serverSent: new Counter({
      name: "grpc_server_msg_sent_total",
      help: "Stream messages sent",
      labelNames: method,
      registers,
    }),
    serverActive: new Gauge({
      name: "ganglion_grpc_active_calls",
      help: "Calls in progress",
      labelNames: method,
      registers,
    }),
    clientHandled: new Counter({
      name: "grpc_client_handled_total",
      help: "Calls made to other services, by status code",
      labelNames: [...method, "grpc_code"],
      registers,
    }),
  };
}
