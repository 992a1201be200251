import { once } from "node:events";
import { chmodSync, closeSync, openSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";

/** What the supervisor can be asked. */
export type ControlRequest =
  | { ask: "status" }
  | { ask: "down" }
  | { ask: "renew" }
  /** Answered when a part is ready, as another process than this one. */
  | { ask: "wait"; part: string; notPid: number };

/** A line of an answer; the last one has `done`. */
export type ControlLine = Record<string, unknown> & { done?: true };

/** Answers one request with any number of lines. */
export type ControlHandler = (request: ControlRequest, say: (line: ControlLine) => void) => Promise<void>;

const MAX_LINE_BYTES = 64 << 10;

/** serveControl listens on a unix socket that only the supervisor's own user can open. */
export async function serveControl(path: string, handle: ControlHandler): Promise<() => void> {
  rmSync(path, { force: true });
  const server = createServer((socket) => {
    socket.on("error", () => {});
    answer(socket, handle).catch((error: Error) =>
      socket.end(`${JSON.stringify({ error: error.message })}\n`),
    );
  });
  const before = process.umask(0o177);
  await withShortPath(path, async (short) => {
    server.listen(short);
    await once(server, "listening");
  });
  process.umask(before);
  chmodSync(path, 0o600);
  return () => {
    server.close();
    rmSync(path, { force: true });
  };
}

async function answer(socket: Socket, handle: ControlHandler): Promise<void> {
  const request = JSON.parse(await readLine(socket)) as ControlRequest;
  await handle(request, (line) => socket.write(`${JSON.stringify(line)}\n`));
  socket.end(`${JSON.stringify({ done: true })}\n`);
}

function readLine(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
      if (text.includes("\n")) resolve(text.split("\n")[0] as string);
      else if (text.length > MAX_LINE_BYTES) reject(new Error("the request is too long"));
    });
    socket.once("close", () => reject(new Error("there was no request")));
  });
}

/**
 * askSupervisor sends one request and calls back with each line of the answer. False when no supervisor listens there.
 */
export async function askSupervisor(
  path: string,
  request: ControlRequest,
  onLine: (line: ControlLine) => void = () => {},
  timeoutMs = 60_000,
): Promise<boolean> {
  const socket = await open(path);
  if (!socket) return false;
  // It is thrown below; without a listener it would end the process.
  socket.on("error", () => {});
  const timer = setTimeout(() => socket.destroy(new Error("the supervisor does not answer")), timeoutMs);
  try {
    socket.write(`${JSON.stringify(request)}\n`);
    for await (const text of createInterface({ input: socket })) {
      const line = JSON.parse(text) as ControlLine;
      if (typeof line.error === "string") throw new Error(line.error);
      if (!line.done) onLine(line);
    }
    if (socket.errored) throw socket.errored;
    return true;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

async function open(path: string): Promise<Socket | undefined> {
  try {
    return await withShortPath(path, async (short) => {
      const socket = connect({ path: short });
      await once(socket, "connect");
      return socket;
    });
  } catch (error) {
    if (["ENOENT", "ECONNREFUSED", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? ""))
      return undefined;
    throw error;
  }
}

/** The path of a unix socket has at most 107 bytes; a state folder may lie deeper, so it is reached through its descriptor. */
async function withShortPath<T>(path: string, use: (short: string) => Promise<T>): Promise<T> {
  const folder = openSync(dirname(path), "r");
  try {
    return await use(join(`/proc/${process.pid}/fd/${folder}`, basename(path)));
  } finally {
    closeSync(folder);
  }
}
