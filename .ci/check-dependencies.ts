// Runs dependency-cruiser over the sources and fails on a broken rule, on a check
// that read fewer modules than there are files (a compiler without an API makes the
// tool read nothing and report success), and when more than one file uses node-vault.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

interface Cruised {
  modules: { source: string; dependencies: { resolved: string }[] }[];
  summary: {
    violations: { from: string; to: string; rule: { name: string; severity: string } }[];
  };
}

const ROOTS = ["services", "test", ".ci"];

const run = spawnSync(
  process.execPath,
  ["node_modules/dependency-cruiser/bin/dependency-cruise.mjs", "--output-type", "json", ...ROOTS],
  { encoding: "utf8", maxBuffer: 1 << 28 },
);
if (run.error) throw run.error;
let cruised: Cruised;
try {
  cruised = JSON.parse(run.stdout) as Cruised;
} catch {
  process.stderr.write(`dependency-cruiser gave no result:\n${run.stderr}\n`);
  process.exit(1);
}

const problems = cruised.summary.violations
  .filter((v) => v.rule.severity === "error")
  .map((v) => `${v.rule.name}: ${v.from} → ${v.to}`);

const files = ROOTS.flatMap((root) =>
  readdirSync(root, { recursive: true, encoding: "utf8" }).map((name) => join(root, name)),
).filter((name) => name.endsWith(".ts") && !name.includes("node_modules"));
const read = new Set(cruised.modules.map((m) => m.source));
const unread = files.filter((name) => !read.has(name));
if (unread.length > 0) {
  problems.push(`${unread.length} of ${files.length} files were not read, for example ${unread[0]}`);
}

const vaultUsers = cruised.modules
  .filter((m) => m.source.startsWith("services/"))
  .filter((m) => m.dependencies.some((d) => /node_modules\/node-vault\//.test(d.resolved)))
  .map((m) => m.source);
if (vaultUsers.length > 1)
  problems.push(`node-vault is imported by more than one file: ${vaultUsers.join(", ")}`);

for (const problem of problems) process.stderr.write(`${problem}\n`);
process.stdout.write(`dependency rules: ${files.length} files, ${problems.length} problems\n`);
process.exit(problems.length === 0 ? 0 : 1);
