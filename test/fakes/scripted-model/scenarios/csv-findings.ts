/** What the program of csv-program.ts prints. */
export interface Findings {
  readonly rows: number;
  readonly group_by: string;
  readonly groups: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly regression: {
    readonly x: string;
    readonly y: string;
    readonly slope: number;
    readonly intercept: number;
    readonly r: number;
  };
  readonly check: { readonly a: number; readonly b: number; readonly total: number };
}

/** readFindings finds the program's line of JSON in a tool's output, whatever stands around it. */
export function readFindings(output: string): Findings | undefined {
  for (const line of output.split("\n")) {
    const start = line.indexOf('{"rows"');
    if (start < 0) continue;
    try {
      return JSON.parse(line.slice(start, line.lastIndexOf("}") + 1)) as Findings;
    } catch {
      // Not the program's line after all.
    }
  }
  return undefined;
}

/** describeFindings says the figures in words. */
export function describeFindings({ rows, group_by, groups, regression }: Findings): string {
  const lines = Object.entries(groups).map(([name, { count, ...means }]) => {
    const figures = Object.entries(means).map(
      ([column, value]) => `${column.replace("mean_", "mean ")} ${value}`,
    );
    return `- ${group_by} ${name}: ${count} rows, ${figures.join(", ")}`;
  });
  const { x, y, slope, intercept, r } = regression;
  return [
    `Scripted analysis of ${rows} rows:`,
    ...lines,
    `${y} = ${slope} × ${x} + ${intercept}, correlation r = ${r}.`,
  ].join("\n");
}
