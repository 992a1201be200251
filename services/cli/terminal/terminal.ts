import { styleText } from "node:util";
import { visible } from "./visible-text.ts";

type Style = Parameters<typeof styleText>[0];

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/** Shorter waits show nothing: a flash of progress says less than none. */
const PATIENCE_MS = 700;
const FRAME_MS = 90;

/** Terminal writes for a person or, with --json, for a program. */
export class Terminal {
  readonly json: boolean;
  readonly #colours: boolean;

  constructor(options: { json: boolean }) {
    this.json = options.json;
    this.#colours = process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  }

  /** One line for people; nothing with --json. */
  line(text = ""): void {
    if (!this.json) process.stdout.write(`${text}\n`);
  }

  /** One JSON object a line for programs; nothing without --json. */
  object(value: unknown): void {
    if (this.json) process.stdout.write(`${JSON.stringify(value, writeBigInt)}\n`);
  }

  /** Colours a text where colours are wanted. Text of others is made harmless first. */
  style(style: Style, text: string): string {
    return this.#colours ? styleText(style, text, { validateStream: false }) : text;
  }

  /** A name and a value, aligned. */
  pair(name: string, value: string): void {
    this.line(`  ${this.style("dim", name.padEnd(12))} ${visible(value)}`);
  }

  /** Rows in columns. */
  table(rows: readonly (readonly string[])[]): void {
    const shown = rows.map((row) => row.map(visible));
    const widths = (shown[0] ?? []).map((_, column) =>
      Math.max(...shown.map((row) => (row[column] ?? "").length)),
    );
    for (const [index, row] of shown.entries()) {
      const text = row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd();
      this.line(index === 0 ? this.style("dim", text) : text);
    }
  }

  /** Shows on standard error that something is still going on, once it has taken a while. */
  progress(): Progress {
    return new Progress(process.stderr.isTTY === true && !this.json);
  }
}

/** What goes on, for whoever waits. */
export class Progress {
  readonly #shown: boolean;
  #what = "";
  #timer: NodeJS.Timeout | undefined;
  #frame = 0;

  constructor(shown: boolean) {
    this.#shown = shown;
  }

  /** Says what is waited for from now on. */
  set(what: string): void {
    this.#what = what;
    if (!this.#shown || this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = setInterval(() => {
        this.#frame = (this.#frame + 1) % FRAMES.length;
        process.stderr.write(`\r\u001b[2K${FRAMES[this.#frame]} ${visible(this.#what)}`);
      }, FRAME_MS);
    }, PATIENCE_MS);
  }

  /** Removes the line. */
  clear(): void {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    process.stderr.write("\r\u001b[2K");
  }
}

function writeBigInt(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}
