import { DEFAULT_IMAGE } from "../../../../services/common/config/common-fields.ts";
import { loadContracts } from "../../../../services/common/grpc/contracts.ts";
import type { AnyHandler } from "../../../../services/common/grpc/handlers.ts";
import { Feeds } from "../../../../services/session/live/feeds.ts";
import { RunnableMonitor } from "../../../../services/session/live/runnable-monitor.ts";
import type { Deps } from "../../../../services/session/rpc/deps.ts";
import { loadEventRules } from "../../../../services/session/rpc/load-event-rules.ts";
import { acquireLease } from "../../../../services/session/rpc/session/acquire-lease.ts";
import { emitEvents } from "../../../../services/session/rpc/session/emit-events.ts";
import { getEvents } from "../../../../services/session/rpc/session/get-events.ts";
import { getLease } from "../../../../services/session/rpc/session/get-lease.ts";
import { harnessHeartbeat } from "../../../../services/session/rpc/session/harness-heartbeat.ts";
import { releaseLease } from "../../../../services/session/rpc/session/release-lease.ts";
import { watchEvents } from "../../../../services/session/rpc/session/watch-events.ts";
import { watchRunnable } from "../../../../services/session/rpc/session/watch-runnable.ts";
import type { Host } from "../core/network.ts";
import { currentProcess, type SimProcess } from "../core/virtual-time.ts";
import type { SimDatabase } from "./sim-database.ts";
import { SimLeaseStore } from "./sim-lease-store.ts";
import { SimLogStore } from "./sim-log-store.ts";

const rules = loadEventRules(loadContracts(DEFAULT_IMAGE));
const PATH = "/ganglion.session.v1.SessionService/";

/** One boot of the session service: its real handlers, feeds and monitor over the simulated database. */
export function bootSession(process: SimProcess, database: SimDatabase, heartbeatTtlMs: number): Host {
  return currentProcess.run(process, () => {
    const hear = (sessionId: string, isRunnable: boolean): void => {
      // Hints are lost now and then: nothing may depend on one.
      if (process.random.chance(0.1)) return;
      feeds.wake(sessionId);
      if (isRunnable) runnable.hint();
    };
    const fromOthers = (sessionId: string, isRunnable: boolean): void => {
      process.time.at(process.time.now + 1, () => process.deliver(() => hear(sessionId, isRunnable)));
    };
    database.hints.add(fromOthers);
    process.onDeath(() => database.hints.delete(fromOthers));
    const announce = (sessionId: string, isRunnable: boolean): void => {
      hear(sessionId, isRunnable);
      for (const tell of database.hints) if (tell !== fromOthers) tell(sessionId, isRunnable);
    };
    const log = new SimLogStore(database, announce);
    const leases = new SimLeaseStore(database, heartbeatTtlMs);
    const feeds: Feeds = new Feeds(log, () => true);
    const runnable: RunnableMonitor = new RunnableMonitor(leases, heartbeatTtlMs);
    const checkpoints = { get: async () => "none" as const };
    const deps = {
      log,
      leases,
      checkpoints,
      feeds,
      runnable,
      rules,
      heartbeatTtlMs,
      quietMs: 15_000,
      announce,
    };
    const all = deps as unknown as Deps;
    const handlers: [string, AnyHandler][] = [
      ["EmitEvents", emitEvents(all)],
      ["GetEvents", getEvents(all)],
      ["WatchEvents", watchEvents(all)],
      ["HarnessHeartbeat", harnessHeartbeat(all)],
      ["AcquireLease", acquireLease(all)],
      ["ReleaseLease", releaseLease(all)],
      ["GetLease", getLease(all)],
      ["WatchRunnable", watchRunnable(all)],
    ];
    return {
      process,
      service: "session",
      handlers: new Map(handlers.map(([name, handler]) => [PATH + name, handler])),
    };
  });
}
