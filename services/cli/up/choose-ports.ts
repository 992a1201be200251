import { freePort, isFree } from "./free-port.ts";

/** A port that was asked for and is taken. */
export class PortTakenError extends Error {
  override readonly name = "PortTakenError";
  readonly port: number;

  constructor(port: number) {
    super(`port ${port} on 127.0.0.1 is taken`);
    this.port = port;
  }
}

/**
 * choosePorts gives each name a port on 127.0.0.1 that is free now: the remembered one where that is free, else a
 * random one. A wanted port that is taken is an error: its number is known to others.
 */
export async function choosePorts(
  names: readonly string[],
  remembered: Record<string, number>,
  wanted: Record<string, number>,
): Promise<Record<string, number>> {
  const ports: Record<string, number> = {};
  const used = new Set(Object.values(wanted));
  for (const [name, port] of Object.entries(wanted)) {
    if (port !== 0 && !(await isFree(port))) throw new PortTakenError(port);
    if (port !== 0) ports[name] = port;
  }
  for (const name of [...names, ...Object.keys(wanted)]) {
    if (ports[name] !== undefined) continue;
    const before = remembered[name];
    const port = before && !used.has(before) && (await isFree(before)) ? before : await freePort(used);
    used.add(port);
    ports[name] = port;
  }
  return ports;
}
