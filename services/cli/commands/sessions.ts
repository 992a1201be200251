import { Session } from "../../gen/ganglion/session/v1/session_service.ts";
import { connectMesh } from "../client/connect-mesh.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import type { Command } from "./command.ts";

const STATUSES = ["?", "idle", "running", "rescheduling", "terminated"];

/** `ganglion sessions` lists sessions, newest first. */
export const sessions: Command = {
  name: "sessions",
  usage: "",
  summary: "list sessions, newest first",
  options: {
    limit: { type: "string", default: "20" },
    all: { type: "boolean", default: false },
  },
  details: ["--limit <n> shows that many (at most 100); --all shows archived ones too."],
  arity: [0, 0],
  run: async ({ options, stateDir, terminal }) => {
    const limit = Number(options.limit);
    if (!Number.isInteger(limit) || limit < 1 || limit > 100)
      throw new CliError("--limit must be from 1 to 100", EXIT.usage);
    const mesh = connectMesh(stateDir);
    try {
      const { sessions: found } = await mesh.sessions.listSessions({
        pageSize: limit,
        pageToken: "",
        agentId: "",
        agentVersion: 0,
        statuses: [],
        includeArchived: options.all === true,
        order: 0,
        createdAtOrAfter: undefined,
        createdBefore: undefined,
        workspaceId: "",
      });
      for (const session of found) terminal.object(Session.toJSON(session));
      if (found.length === 0) terminal.line("no sessions yet");
      else
        terminal.table([["SESSION", "STATUS", "EVENTS", "CREATED", "BRAIN", "TITLE"], ...found.map(rowOf)]);
      return EXIT.ok;
    } finally {
      mesh.close();
    }
  },
};

function rowOf(session: Session): string[] {
  return [
    session.id,
    STATUSES[session.status] ?? "?",
    String(session.headPosition),
    session.createTime ? new Date(Number(session.createTime.seconds) * 1000).toISOString() : "",
    session.leaseOwner.slice(session.leaseOwner.lastIndexOf("/") + 1) || "-",
    session.title,
  ];
}
