/** The services whose points are tested. */
export const SERVICES = ["session", "harness", "sandbox", "mcp-proxy"] as const;

/** One of them. */
export type ServiceName = (typeof SERVICES)[number];

/**
 * pointName writes a point as the list has it: service, kind, subject, moment. A gRPC path becomes "Service.Method".
 * `session.pg.append_one.before`, `harness.send.SessionService.EmitEvents`, `sandbox.journal.sync.after`.
 */
export function pointName(service: string, kind: string, subject?: string, moment?: string): string {
  const short = subject?.startsWith("/")
    ? subject.slice(subject.lastIndexOf(".") + 1).replace("/", ".")
    : subject;
  return [service, kind, short, moment].filter((part) => part !== undefined).join(".");
}

/** serviceOf names the service in a point's name. */
export function serviceOf(point: string): ServiceName {
  const service = SERVICES.find((name) => point.startsWith(`${name}.`));
  if (!service) throw new Error(`${point} begins with no service`);
  return service;
}
