import { readFileSync, statSync } from "node:fs";
import type { Field } from "../common/config/fields.ts";
import { NO_PRICES, type PriceList, parsePriceList } from "./domain/price-list.ts";

const MAX_BYTES = 1 << 20;

/** priceListFile is a setting that names the operator's price list; absent = no model has a price. */
export function priceListFile(help: string): Field<PriceList> {
  return { help, parse: (path) => (path === "" ? NO_PRICES : readPriceList(path)), default: () => NO_PRICES };
}

function readPriceList(path: string): PriceList {
  let bytes: Buffer;
  try {
    if (statSync(path).size > MAX_BYTES) throw new Error("it is too large");
    bytes = readFileSync(path);
  } catch (error) {
    throw new Error(
      `names a file that cannot be read: ${(error as NodeJS.ErrnoException).code ?? "too large"}`,
    );
  }
  return parsePriceList(bytes);
}
