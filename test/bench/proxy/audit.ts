import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { createLedger } from "../../../services/mcp-proxy/audit/ledger.ts";
import { createRecordFile } from "../../../services/mcp-proxy/audit/record-file.ts";
import { listOwnLines } from "../../../services/mcp-proxy/audit/record-store.ts";
import type { WrittenRow } from "../../../services/mcp-proxy/audit/written-row.ts";
import { blankRecord } from "../../../services/mcp-proxy/domain/new-record.ts";
import type { Ledger, LedgerRecord } from "../../../services/mcp-proxy/domain/ports.ts";
import { migrate } from "../../../services/mcp-proxy/store/migrate.ts";
import { startTestPostgres } from "../../kit/postgres.ts";
import type { CleanUps } from "../report/clean-ups.ts";
import { reportQuantiles } from "../report/report-quantiles.ts";
import type { Benchmark } from "../report/run-suites.ts";
import { median, type Pair } from "../report/statistics.ts";

const WARM_UP = 500;
const PAIRS = 500;
const WRITER = { instance: "mcp-proxy-bench", bootId: "bench" };

/** A database with the proxy's schema, and a folder for the second place of the log. */
export interface AuditStand {
  readonly pool: pg.Pool;
  readonly owner: pg.Client;
  readonly folder: string;
}

/** startAuditStand starts PostgreSQL alone. */
export async function startAuditStand(cleanUps: CleanUps, say: (line: string) => void): Promise<AuditStand> {
  say("starting PostgreSQL");
  const folder = mkdtempSync(join(tmpdir(), "ganglion-bench-audit-"));
  cleanUps.add(() => rmSync(folder, { recursive: true, force: true }));
  const postgres = await startTestPostgres();
  cleanUps.add(() => postgres.stop());
  await migrate(postgres.connection("ganglion_owner"));
  const pool = new pg.Pool({ ...postgres.connection("ganglion_proxy"), max: 4 });
  pool.on("error", () => {});
  cleanUps.add(() => pool.end());
  const owner = new pg.Client(postgres.connection("ganglion_owner"));
  owner.on("error", () => {});
  await owner.connect();
  cleanUps.add(() => owner.end());
  return { pool, owner, folder };
}

/** One record until it is durable in both places, held against a plain INSERT of the same row. */
export const auditBenchmark: Benchmark<AuditStand> = {
  figures: ["audit_ms_p50"],
  async run({ pool, owner, folder }, { say, report }) {
    const sink = createRecordFile({
      path: join(folder, "records.jsonl"),
      ownLines: (from, limit) => listOwnLines(pool, WRITER.instance, from, limit),
      onTrouble: (error) => say(String(error)),
    });
    const keep = (rows: readonly WrittenRow[]) => sink.append(rows.flatMap(({ line }) => line ?? []));
    const strict = createLedger(pool, WRITER, { keep });
    const databaseOnly = createLedger(pool, WRITER);
    const insert = await plainInsert(owner, await strictRow(pool, strict));
    const pairs: Pair[] = [];
    const alone: number[] = [];
    for (let n = 0; n < WARM_UP + PAIRS; n += 1) {
      const ours = await time(() => strict.write(record(`req_a${n}`)));
      const withoutFile = await time(() => databaseOnly.write(record(`req_b${n}`)));
      const baseline = await time(() => insert(n));
      if (n < WARM_UP) continue;
      pairs.push({ ours, baseline });
      alone.push(withoutFile);
    }
    await sink.close();
    reportQuantiles(report, ["audit_ms_p50"], "ms", pairs);
    say(`a record in the database alone: ${median(alone).toFixed(2)} ms`);
  },
};

function record(requestId: string): LedgerRecord {
  return {
    ...blankRecord("decision", requestId),
    session_id: "sesn_01m8ny2nb94zvc00dks3grvd3y",
    workspace_id: "wrkspc_default",
    epoch: "1",
    caller: "spiffe://ganglion.local/harness/harness-1",
    token_id: "tok_01m8ny2wea5xgfh3ys0bw063m9",
    operation: "mcp_call_tool",
    destination: "https://mcp.example.com",
    target: "echo",
    effect: "deny",
    reason: "DEST_NOT_ALLOWED",
  };
}

/** A row as the ledger writes it. */
async function strictRow(pool: pg.Pool, ledger: Ledger): Promise<Record<string, unknown>> {
  await ledger.write(record("req_first"));
  const { rows } = await pool.query("SELECT * FROM proxy.audit_records LIMIT 1");
  return rows[0];
}

/** The same row into a table like the log's, as plainly as can be. */
async function plainInsert(owner: pg.Client, row: Record<string, unknown>) {
  await owner.query("CREATE TABLE proxy.bench_records (LIKE proxy.audit_records INCLUDING ALL)");
  const columns = Object.keys(row);
  const text = `INSERT INTO proxy.bench_records (${columns}) VALUES (${columns.map((_, i) => `$${i + 1}`)})`;
  return (n: number) => {
    const values = Object.values({ ...row, sequence: n, request_id: `req_c${n}` });
    return owner.query({ name: "bench_insert", text, values });
  };
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}
