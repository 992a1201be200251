import { encodeFrame, FrameReader } from "./frames.ts";
import { DEFAULT_LIMITS, type FromAgent, type OutsideConfig, type ToAgent } from "./protocol.ts";
import { Toolset } from "./toolset.ts";

/**
 * The hand agent: one small process inside the jail that runs tools for the sandbox service and speaks frames over
 * its standard input and output. It ends when its input does, so it never outlives the service.
 */
const running = new Map<number, AbortController>();
let toolset: Toolset | undefined;
/** Settled when programs find the way out; absent in a hand that has none. */
let forwarding: Promise<void> | undefined;

function send(frame: FromAgent): void {
  process.stdout.write(encodeFrame(frame));
}

function configure(limits = DEFAULT_LIMITS, outside?: OutsideConfig): Toolset {
  if (outside) forwarding = forward(outside);
  return new Toolset({
    roots: ["/workspace", "/tmp", "/home/hand"],
    stateFolder: "/run/hand/shell",
    outputFolder: "/tmp/.outputs",
    limits,
    environment: outside?.environment ?? {},
    onUnclean: (detail) => send({ type: "unclean", detail }),
  });
}

async function forward({ maxConnections }: OutsideConfig): Promise<void> {
  try {
    // Loaded where it is needed: most hands' births need not wait for it.
    const { startForwarder } = await import("./forwarder.ts");
    await startForwarder(maxConnections);
  } catch {
    // Programs find nobody at their proxy's address, and say so.
  }
}

async function call(frame: Extract<ToAgent, { type: "call" }>): Promise<void> {
  const abort = new AbortController();
  running.set(frame.id, abort);
  toolset ??= configure();
  const { id, name, input, timeoutMs } = frame;
  if (forwarding !== undefined) await forwarding;
  const onStart = () => send({ type: "started", id });
  const result = await toolset.run({ name, input, timeoutMs, signal: abort.signal, onStart });
  running.delete(id);
  send({ type: "result", id, result });
}

function receive(frame: ToAgent): void {
  if (frame.type === "configure") toolset = configure(frame.limits, frame.outside);
  else if (frame.type === "call") void call(frame);
  else if (frame.type === "cancel") running.get(frame.id)?.abort();
  else if (frame.type === "ping") send({ type: "pong", nonce: frame.nonce });
}

// Signals that a command sends to everything it can reach; only SIGKILL and SIGSTOP get through.
for (const name of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGPIPE"] as const) {
  process.on(name, () => undefined);
}
const reader = new FrameReader();
process.stdin.on("data", (chunk: Buffer) => {
  for (const frame of reader.push(chunk)) receive(frame as ToAgent);
});
process.stdin.on("end", () => process.exit(0));
process.stdin.on("error", () => process.exit(0));
process.stdout.on("error", () => process.exit(0));
send({ type: "ready" });
