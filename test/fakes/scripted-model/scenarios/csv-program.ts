/**
 * CSV_PROGRAM is the program that the scripted model writes into its hand: it reads a CSV, groups it by its first text
 * column, and fits a line between its first and its last numeric column. Its one line of JSON is what the answer quotes.
 * Plain enough for whatever Node a hand has.
 */
export const CSV_PROGRAM = `import { readFileSync } from "node:fs";

const [header, ...lines] = readFileSync(process.argv[2], "utf8").trim().split(/\\r?\\n/);
const columns = header.split(",").map((name) => name.trim());
const rows = lines.map((line) => line.split(",").map((cell) => cell.trim()));
const isNumber = (cell) => cell !== "" && Number.isFinite(Number(cell));
const numeric = columns.flatMap((_, at) => (rows.every((row) => isNumber(row[at])) ? [at] : []));
const key = columns.findIndex((_, at) => !numeric.includes(at));
const valuesOf = (at, of = rows) => of.map((row) => Number(row[at]));
const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => sum(values) / values.length;
const round = (value) => Math.round(value * 1e4) / 1e4;

const byName = new Map();
for (const row of rows) byName.set(row[key] ?? "all", [...(byName.get(row[key] ?? "all") ?? []), row]);
const groups = {};
for (const [name, members] of byName) {
  groups[name] = { count: members.length };
  for (const at of numeric) groups[name]["mean_" + columns[at]] = round(mean(valuesOf(at, members)));
}

const x = numeric[0];
const y = numeric.at(-1);
const [xs, ys] = [valuesOf(x), valuesOf(y)];
const [mx, my] = [mean(xs), mean(ys)];
const sxy = sum(xs.map((value, n) => (value - mx) * (ys[n] - my)));
const sxx = sum(xs.map((value) => (value - mx) ** 2));
const syy = sum(ys.map((value) => (value - my) ** 2));
const slope = sxy / sxx;

const half = Math.ceil(ys.length / 2);
const [a, b] = [round(sum(ys.slice(0, half))), round(sum(ys.slice(half)))];
console.log(
  JSON.stringify({
    rows: rows.length,
    group_by: columns[key],
    groups,
    regression: { x: columns[x], y: columns[y], slope: round(slope), intercept: round(my - slope * mx), r: round(sxy / Math.sqrt(sxx * syy)) },
    check: { a, b, total: round(sum(ys)) },
  }),
);
`;
