import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as pass } from "node:timers/promises";
import pg from "pg";
import type { RunningService } from "../../kit/start-service.ts";
import type { CleanUps } from "../report/clean-ups.ts";
import { alone, reportQuantiles } from "../report/report-quantiles.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { quantile } from "../report/statistics.ts";
import { type CallEnd, type Refusal, untilRefused } from "../report/until-refused.ts";
import { type CallStand, startCallStand } from "./calls.ts";
import { type Caller, egressDoor, mcpDoor, modelDoor } from "./revoke-doors.ts";

const FIGURES = ["revoke_s_p50", "revoke_s_p99"];
const REVOCATIONS_A_DOOR = 70;
const BOUND_MS = 1000;
const REASON = "SESSION_ENDED";
/** What else a call may end with that was let in before: no Vault token is made for it any more. */
const LET_IN_BEFORE = "TOKEN_STALE_EPOCH";

/** Two replicas of mcp-proxy on one database, and what they call. */
export interface ReplicaStand extends CallStand {
  readonly cleanUps: CleanUps;
  readonly other: RunningService;
  /** Says of the newest call of a session whether it was let in, by the audit log. */
  readonly wasLetIn: (sessionId: string) => Promise<boolean>;
}

/** startReplicaStand adds a second replica to what the benchmarks of calls have. */
export async function startReplicaStand(
  cleanUps: CleanUps,
  say: (line: string) => void,
): Promise<ReplicaStand> {
  const stand = await startCallStand(cleanUps, say);
  const other = await stand.kit.startProxy({ GANGLION_INSTANCE: "mcp-proxy-2" });
  cleanUps.add(() => other.stop());
  const pool = new pg.Pool({ ...stand.kit.postgres.connection("ganglion_owner"), max: 1 });
  pool.on("error", () => {});
  cleanUps.add(() => pool.end());
  const wasLetIn = async (sessionId: string) => {
    const text = `SELECT effect FROM proxy.audit_records
      WHERE session_id = $1 AND kind = 'decision' ORDER BY sequence DESC LIMIT 1`;
    return (await pool.query<{ effect: string }>(text, [sessionId])).rows[0]?.effect === "allow";
  };
  return { ...stand, cleanUps, other, wasLetIn };
}

/** A token that is revoked at one replica and used at the other until that refuses it, at each of the doors. */
export const revokeBenchmark: Benchmark<ReplicaStand> = {
  figures: FIGURES,
  async run(stand, { say, report }) {
    const doors = {
      mcp: mcpDoor(stand),
      models: await modelDoor(stand),
      egress: egressDoor(stand, stand.cleanUps),
    };
    const all: Revocation[] = [];
    const delay = monitorEventLoopDelay();
    delay.enable();
    for (const [name, open] of Object.entries(doors)) {
      const some: Revocation[] = [];
      for (let n = 0; n < REVOCATIONS_A_DOOR; n += 1) some.push(await revoke(stand, await open()));
      say(`revoke, at the door ${name}: ${describe(some)}`);
      all.push(...some);
    }
    delay.disable();
    say(
      `revoke: the benchmark's own process was kept from running for ${(delay.max / 1e6).toFixed(0)} ms at most`,
    );
    reportQuantiles(report, FIGURES, "s", alone(all.map(({ ms }) => ms / 1000)));
  },
};

/** How long it took until the refusal was there, and until the revocation was answered. */
interface Revocation extends Refusal {
  readonly ms: number;
  readonly answeredMs: number;
}

async function revoke(
  { kit, other, wasLetIn }: ReplicaStand,
  { sessionId, call }: Caller,
): Promise<Revocation> {
  const bindings = await kit.bindings();
  // A call that was let in and then cut ends much as one that was refused. The log knows which of the two it was.
  const callOther = async (): Promise<CallEnd> => {
    const end = await call(other);
    const isEither = typeof end === "object" && [REASON, LET_IN_BEFORE].includes(end.refused);
    return isEither && (await wasLetIn(sessionId)) ? "cut" : end;
  };
  await expectServed(call, kit.service);
  await expectServed(call, other);
  const begunAt = performance.now();
  await expectServed(call, other);
  const callMs = performance.now() - begunAt;

  let askedAt = Number.POSITIVE_INFINITY;
  let answeredAt = Number.POSITIVE_INFINITY;
  const end = async () => {
    // Anywhere in a call.
    await pass(Math.random() * callMs);
    askedAt = performance.now();
    await bindings.endBinding({ sessionId });
    answeredAt = performance.now();
  };
  const letInUntil = () => Math.min(answeredAt, askedAt + BOUND_MS);
  const [refusal] = await Promise.all([untilRefused(callOther, { reason: REASON, letInUntil }), end()]);
  const ms = refusal.at - askedAt;
  if (!(ms > 0)) throw new Error("a call was refused before its token was revoked");
  for (const replica of [other, kit.service]) {
    await untilRefused(() => call(replica), { reason: REASON, letInUntil });
  }
  return { ...refusal, ms, answeredMs: answeredAt - askedAt };
}

async function expectServed(call: Caller["call"], replica: RunningService): Promise<void> {
  const end = await call(replica);
  if (end !== "served") throw new Error(`before the revocation a call ended so: ${JSON.stringify(end)}`);
}

function describe(some: readonly Revocation[]): string {
  const spread = (of: (one: Revocation) => number) =>
    [0.5, 0.99, 1].map((q) => quantile(some.map(of), q).toFixed(1)).join(" / ");
  const sum = (of: (one: Revocation) => number) => some.reduce((total, one) => total + of(one), 0);
  return (
    `refused after ${spread(({ ms }) => ms)} ms (median / p99 / most), the revocation answered after ` +
    `${spread(({ answeredMs }) => answeredMs)} ms; before that ${sum(({ served }) => served)} calls were served ` +
    `and ${sum(({ cut }) => cut)} cut`
  );
}
