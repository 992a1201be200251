import { newId } from "../../common/ids/new-id.ts";
import { Session } from "../../gen/ganglion/session/v1/session_service.ts";
import { connectMesh, type Mesh } from "../client/connect-mesh.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import type { Command, Invocation } from "./command.ts";
import { findVerb } from "./find-verb.ts";

const STATUSES = ["?", "idle", "running", "rescheduling", "terminated"];

/** `ganglion sessions` lists sessions, makes one from another's log, and ends one at once. */
export const sessions: Command = {
  name: "sessions",
  usage: "[fork|kill <session>]",
  summary: "list sessions, newest first; fork or kill one",
  options: {
    limit: { type: "string", default: "20" },
    all: { type: "boolean", default: false },
    at: { type: "string" },
    title: { type: "string" },
  },
  details: [
    "--limit <n> shows that many (at most 100); --all shows archived ones too.",
    "",
    "fork <session> [--at <position>] [--title <title>]",
    "    makes a session whose log begins as that one's did, up to a position (without --at: as far as it goes).",
    "    It goes on by itself: a turn that was under way there goes on in the fork, with a hand of its own.",
    "kill <session>",
    "    ends a session at once, whatever it is doing. Its log can still be read, and forked.",
  ],
  arity: [0, 2],
  run: async (invocation) => {
    const [verb, sessionId] = invocation.positionals;
    const act = verb === undefined ? list : findVerb("sessions", VERBS, verb);
    if (verb !== undefined && !sessionId) {
      throw new CliError(`usage: ganglion sessions ${verb} <session>`, EXIT.usage);
    }
    const { at, title, limit, all } = invocation.options;
    if (verb !== "fork" && (at !== undefined || title !== undefined)) {
      throw new CliError("--at and --title are for fork", EXIT.usage);
    }
    if (at !== undefined && !/^[1-9]\d{0,17}$/.test(String(at))) {
      throw new CliError("--at must be a position", EXIT.usage);
    }
    if (verb !== undefined && (limit !== "20" || all === true)) {
      throw new CliError("--limit and --all are for the list", EXIT.usage);
    }
    if (!/^([1-9]\d?|100)$/.test(String(limit))) {
      throw new CliError("--limit must be from 1 to 100", EXIT.usage);
    }
    const mesh = connectMesh(invocation.stateDir);
    try {
      await act(mesh, sessionId ?? "", invocation);
      return EXIT.ok;
    } finally {
      mesh.close();
    }
  },
};

type Verb = (mesh: Mesh, sessionId: string, invocation: Invocation) => Promise<void>;

const VERBS: Record<string, Verb> = {
  fork: async (mesh, sessionId, { options, terminal }) => {
    const { session } = await mesh.sessions.forkSession({
      requestId: newId("req"),
      sessionId,
      position: BigInt(String(options.at ?? "0")),
      title: options.title === undefined ? undefined : String(options.title),
    });
    if (!session) throw new CliError("the fork was not told", EXIT.failed);
    terminal.object(Session.toJSON(session));
    terminal.line(
      `made ${terminal.style("bold", session.id)} of ${sessionId}, position ${session.forkedAtPosition}`,
    );
  },
  kill: async (mesh, sessionId, { terminal }) => {
    const { session } = await mesh.sessions.killSession({ sessionId });
    if (session) terminal.object(Session.toJSON(session));
    terminal.line(`${sessionId} is over`);
  },
};

const list: Verb = async (mesh, _sessionId, { options, terminal }) => {
  const { sessions: found } = await mesh.sessions.listSessions({
    pageSize: Number(options.limit),
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
  else terminal.table([["SESSION", "STATUS", "EVENTS", "CREATED", "BRAIN", "TITLE"], ...found.map(rowOf)]);
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
