import { implement } from "../../common/grpc/handlers.ts";
import { SessionServiceService } from "../../gen/ganglion/session/v1/session_service.ts";
import type { Deps } from "./deps.ts";
import { acquireLease } from "./session/acquire-lease.ts";
import { archiveSession } from "./session/archive-session.ts";
import { createSession } from "./session/create-session.ts";
import { deleteSession } from "./session/delete-session.ts";
import { emitEvents } from "./session/emit-events.ts";
import { forkSession } from "./session/fork-session.ts";
import { getCheckpoint } from "./session/get-checkpoint.ts";
import { getEvents } from "./session/get-events.ts";
import { getLease } from "./session/get-lease.ts";
import { getPayload } from "./session/get-payload.ts";
import { getSession } from "./session/get-session.ts";
import { harnessHeartbeat } from "./session/harness-heartbeat.ts";
import { killSession } from "./session/kill-session.ts";
import { listSessions } from "./session/list-sessions.ts";
import { publishPreviews } from "./session/publish-previews.ts";
import { putCheckpoint } from "./session/put-checkpoint.ts";
import { putPayload } from "./session/put-payload.ts";
import { releaseLease } from "./session/release-lease.ts";
import { subscribePreviews } from "./session/subscribe-previews.ts";
import { updateSession } from "./session/update-session.ts";
import { watchEvents } from "./session/watch-events.ts";
import { watchRunnable } from "./session/watch-runnable.ts";

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
    forkSession: forkSession(deps),
    killSession: killSession(deps),
    subscribePreviews: subscribePreviews(deps),
    putPayload: putPayload(deps),
    getPayload: getPayload(deps),
    putCheckpoint: putCheckpoint(deps),
    getCheckpoint: getCheckpoint(deps),
  });
