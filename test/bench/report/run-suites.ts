import type { CleanUps } from "./clean-ups.ts";
import { type Figure, formatFigure } from "./figure.ts";

/** Where a benchmark's words go. */
export interface Output {
  /** A line for people, on standard error. */
  say(line: string): void;
  /** A finished figure, on standard output. */
  print(line: string): void;
}

/** What a benchmark is given while it runs. */
export interface Bench {
  readonly picked: ReadonlySet<string>;
  say(line: string): void;
  report(figure: Figure): void;
}

/** Figures that are measured together. */
export interface Benchmark<Stand> {
  readonly figures: readonly string[];
  run(stand: Stand, bench: Bench): Promise<void>;
}

/** Benchmarks that share what has to be started for them. */
export interface Suite {
  readonly figures: readonly string[];
  run(bench: Omit<Bench, "report">, report: Bench["report"], cleanUps: CleanUps): Promise<string[]>;
}

/** defineSuite ties benchmarks to the start of what they measure. */
export function defineSuite<Stand>(
  start: (cleanUps: CleanUps, say: Output["say"]) => Promise<Stand>,
  benchmarks: readonly Benchmark<Stand>[],
): Suite {
  return {
    figures: benchmarks.flatMap(({ figures }) => figures),
    async run({ picked, say }, report, cleanUps) {
      const wanted = benchmarks.filter(({ figures }) => figures.some((name) => picked.has(name)));
      if (wanted.length === 0) return [];
      const problems: string[] = [];
      try {
        const stand = await start(cleanUps, say);
        for (const benchmark of wanted) {
          try {
            await benchmark.run(stand, { picked, say, report });
          } catch (error) {
            problems.push(describe(error));
          }
        }
      } catch (error) {
        problems.push(describe(error));
      } finally {
        await cleanUps.run();
      }
      return problems;
    },
  };
}

/**
 * runSuites measures the picked figures and returns what went wrong: a benchmark that threw, and every picked figure
 * that nobody reported.
 */
export async function runSuites(
  suites: readonly Suite[],
  picked: ReadonlySet<string>,
  { say, print }: Output,
  cleanUps: CleanUps,
): Promise<string[]> {
  const reported = new Set<string>();
  const report = (figure: Figure) => {
    if (!picked.has(figure.name)) return;
    print(formatFigure(figure));
    reported.add(figure.name);
  };
  const problems: string[] = [];
  for (const suite of suites) problems.push(...(await suite.run({ picked, say }, report, cleanUps)));
  for (const name of picked) if (!reported.has(name)) problems.push(`${name} was not measured`);
  return problems;
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
