import { connectMesh } from "../client/connect-mesh.ts";
import { watchSession } from "../client/watch-session.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { showEvent } from "../terminal/show-events.ts";
import type { Command } from "./command.ts";

/** `ganglion tail` shows a session's log and stays with it. */
export const tail: Command = {
  name: "tail",
  usage: "<session>",
  summary: "show a session's log and follow it",
  options: {
    after: { type: "string", default: "0" },
    follow: { type: "boolean", default: true },
  },
  details: ["--after <position> begins behind that position; --no-follow ends at the newest event."],
  arity: [1, 1],
  run: async ({ positionals, options, stateDir, terminal }) => {
    const sessionId = positionals[0] as string;
    if (!/^\d{1,18}$/.test(String(options.after)))
      throw new CliError("--after must be a position", EXIT.usage);
    const mesh = connectMesh(stateDir);
    const stop = new AbortController();
    process.once("SIGINT", () => stop.abort());
    try {
      const { session } = await mesh.sessions.getSession({ sessionId });
      const head = session?.headPosition ?? 0n;
      let position = BigInt(String(options.after));
      const isEnough = () => options.follow === false && position >= head;
      if (isEnough()) return EXIT.ok;
      for await (const message of watchSession(mesh, sessionId, position, stop.signal)) {
        if (message.message?.$case === "event") showEvent(terminal, message.message.value);
        position = message.position;
        if (isEnough()) break;
      }
      return EXIT.ok;
    } catch (error) {
      if (stop.signal.aborted) return EXIT.ok;
      throw error;
    } finally {
      mesh.close();
    }
  },
};
