import { GanglionError } from "../../common/errors/ganglion-error.ts";
import { implement, serverStream, unary } from "../../common/grpc/handlers.ts";
import { SessionServiceService } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Deps } from "./deps.ts";
import { acquireLease } from "./session/acquire-lease.ts";
import { archiveSession } from "./session/archive-session.ts";
import { createSession } from "./session/create-session.ts";
import { deleteSession } from "./session/delete-session.ts";
import { emitEvents } from "./session/emit-events.ts";
import { getCheckpoint } from "./session/get-checkpoint.ts";
import { getEvents } from "./session/get-events.ts";
import { getLease } from "./session/get-lease.ts";
import { getPayload } from "./session/get-payload.ts";
import { getSession } from "./session/get-session.ts";
import { harnessHeartbeat } from "./session/harness-heartbeat.ts";
import { listSessions } from "./session/list-sessions.ts";
import { publishPreviews } from "./session/publish-previews.ts";
import { putCheckpoint } from "./session/put-checkpoint.ts";
import { putPayload } from "./session/put-payload.ts";
import { releaseLease } from "./session/release-lease.ts";
import { updateSession } from "./session/update-session.ts";
import { watchEvents } from "./session/watch-events.ts";
import { watchRunnable } from "./session/watch-runnable.ts";

// Filled in one by one; refused by name until then.
const notYet = (): never => {
  throw new GanglionError({ code: "UNIMPLEMENTED", reason: "NOT_SERVED_HERE", message: "not served yet" });
};

/** SessionService with its handlers. */
export const sessionService = (deps: Deps) =>
  implement(SessionServiceService, {
    createSession: createSession(deps),
    getSession: getSession(deps),
    listSessions: listSessions(deps),
    updateSession: updateSession(deps),
    archiveSession: archiveSession(deps),
    deleteSession: deleteSession(deps),
    emitEvents: emitEvents(deps),
    getEvents: getEvents(deps),
    watchEvents: watchEvents(deps),
    publishPreviews: publishPreviews(deps),
    harnessHeartbeat: harnessHeartbeat(deps),
    acquireLease: acquireLease(deps),
    releaseLease: releaseLease(deps),
    getLease: getLease(deps),
    watchRunnable: watchRunnable(deps),
    forkSession: unary(async () => notYet()),
    killSession: unary(async () => notYet()),
    // biome-ignore lint/correctness/useYield: it only refuses
    subscribePreviews: serverStream(async function* () {
      notYet();
    }),
    putPayload: putPayload(deps),
    getPayload: getPayload(deps),
    putCheckpoint: putCheckpoint(deps),
    getCheckpoint: getCheckpoint(deps),
  });
