import { chmodSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { CliError, EXIT } from "../terminal/exit-codes.ts";
import { replaceFile } from "./mesh-files.ts";

const MAX_BYTES = 1 << 20;

/** readModelPrices reads the operator's price list; the session service checks what it says. */
export function readModelPrices(path: string): string {
  try {
    if (statSync(path).size > MAX_BYTES) throw new Error("it is larger than 1 MiB");
    const text = readFileSync(path, "utf8");
    JSON.parse(text);
    return text;
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    throw new CliError(`--model-prices ${path} is no price list: ${why}`, EXIT.config);
  }
}

/** modelPricesSetting puts the price list where the session service's user can read it; without one, none is left there. */
export function modelPricesSetting(state: string, prices: string | undefined): Record<string, string> {
  const path = join(state, "model-prices.json");
  if (prices === undefined) {
    rmSync(path, { force: true });
    return {};
  }
  replaceFile(path, prices);
  // Prices are no secret.
  chmodSync(path, 0o644);
  return { GANGLION_MODEL_PRICES_FILE: path };
}
