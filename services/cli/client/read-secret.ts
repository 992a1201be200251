import { MAX_SECRET_BYTES as MAX_BYTES } from "../../common/seal/secret-form.ts";
import { CliError, EXIT } from "../terminal/exit-codes.ts";

const CTRL_C = "\u0003";
const BACKSPACE = ["\u007f", "\b"];

/**
 * readSecret takes a secret from standard input, the only way in: arguments and environments can be read by others. At
 * a terminal it is typed without an echo.
 */
export async function readSecret(prompt: string): Promise<string> {
  const text = process.stdin.isTTY ? await type(prompt) : await readAll(1);
  return checked(text.replace(/\r?\n$/, ""));
}

function checked(secret: string): string {
  const size = Buffer.byteLength(secret);
  if (size === 0) throw new CliError("there was no secret on standard input", EXIT.data);
  if (size > MAX_BYTES) throw new CliError(`a secret has at most ${MAX_BYTES} bytes`, EXIT.data);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(secret))
    throw new CliError("a secret must not hold control characters", EXIT.data);
  return secret;
}

/**
 * readSecrets takes several secrets, asked for one after the other; where standard input is no terminal each is a line, in the
 * order of the prompts.
 */
export async function readSecrets(prompts: readonly string[]): Promise<string[]> {
  if (prompts.length === 1) return [await readSecret(prompts[0] as string)];
  const secrets: string[] = [];
  if (process.stdin.isTTY) {
    for (const prompt of prompts) secrets.push(checked(await type(prompt)));
    return secrets;
  }
  const lines = (await readAll(prompts.length)).replace(/\r?\n$/, "").split(/\r?\n/);
  if (lines.length !== prompts.length) {
    throw new CliError(`standard input must have ${prompts.length} lines: ${prompts.join(", ")}`, EXIT.data);
  }
  return lines.map(checked);
}

/** Reads so much that what is left out makes one of the secrets too long: none is cut short in silence. */
async function readAll(secrets: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size > secrets * (MAX_BYTES + 2)) break;
  }
  return Buffer.concat(chunks).toString("utf8");
}

function type(prompt: string): Promise<string> {
  process.stderr.write(`${prompt}: `);
  process.stdin.setRawMode(true);
  return new Promise((resolve, reject) => {
    let text = "";
    const finish = (error?: Error) => {
      process.stdin.setRawMode(false);
      process.stdin.off("data", take);
      process.stdin.pause();
      process.stderr.write("\n");
      if (error) reject(error);
      else resolve(text);
    };
    const take = (chunk: Buffer) => {
      for (const sign of chunk.toString("utf8")) {
        if (sign === "\r" || sign === "\n") return finish();
        if (sign === CTRL_C) return finish(new CliError("interrupted", EXIT.failed));
        text = BACKSPACE.includes(sign) ? text.slice(0, -1) : text + sign;
      }
    };
    process.stdin.on("data", take);
  });
}
