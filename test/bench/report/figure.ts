/** One measured figure, as `make bench` prints it. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: "ratio" | "ms" | "s" | "MiB" | "KiB" | "MB/s" | "MiB/s";
  /** What the same run measured without us; null where there is nothing to compare with. */
  readonly baseline: number | null;
  /** Value against the baseline; null where there is none. */
  readonly ratio: number | null;
  /** How many samples, pairs or rounds the value stands for. */
  readonly n: number;
}

const DIGITS = 4;

/** formatFigure is a figure's line, without the line break; a figure that is not a number is an error, never a line. */
export function formatFigure({ name, value, unit, baseline, ratio, n }: Figure): string {
  const numbers = [value, baseline, ratio, n].filter((number) => number !== null);
  if (!numbers.every(Number.isFinite) || n < 1) throw new Error(`${name} was not measured`);
  return JSON.stringify({
    name,
    value: shorten(value),
    unit,
    baseline: baseline === null ? null : shorten(baseline),
    ratio: ratio === null ? null : shorten(ratio),
    n,
  });
}

function shorten(number: number): number {
  return Number(number.toPrecision(DIGITS));
}
