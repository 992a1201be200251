import type { ModelPrice } from "../../gen/ganglion/types/v1/content.ts";
import { isObject, parseJson } from "./json-shape.ts";

const KEYS = {
  input_microcents: "inputMicrocents",
  output_microcents: "outputMicrocents",
  cache_read_microcents: "cacheReadMicrocents",
  cache_write_5m_microcents: "cacheWrite5mMicrocents",
  cache_write_1h_microcents: "cacheWrite1hMicrocents",
} as const satisfies Record<string, keyof ModelPrice>;

/** $10 a token: beyond any price, and a million tokens of it are far from what 64 bits hold. */
const MAX_MICROCENTS = 1_000_000_000;
const MAX_MODELS = 1_000;

/** What models cost by the operator's list; no model has a price that is not in it. */
export interface PriceList {
  priceOf(model: string): ModelPrice | undefined;
}

/** NO_PRICES knows no price. */
export const NO_PRICES: PriceList = { priceOf: () => undefined };

/**
 * parsePriceList reads the operator's list, or throws an Error that says what is wrong. A name that ends with "*" stands
 * for all models that begin so; a whole name counts before any beginning, a longer beginning before a shorter one.
 */
export function parsePriceList(bytes: Uint8Array): PriceList {
  const document = parseJson(bytes);
  if (!isObject(document)) throw new Error("must name a file with one JSON object in UTF-8");
  for (const key of Object.keys(document)) {
    if (key !== "models") throw new Error(`has a key that is not known: ${JSON.stringify(key.slice(0, 64))}`);
  }
  if (!isObject(document.models)) throw new Error("needs an object models");
  const entries = Object.entries(document.models);
  if (entries.length > MAX_MODELS) throw new Error(`may name at most ${MAX_MODELS} models`);
  const prices = new Map(entries.map(([name, value]) => [checkName(name), readPrice(name, value)]));
  const beginnings = [...prices.keys()]
    .filter((name) => name.endsWith("*"))
    .sort((a, b) => b.length - a.length);
  return {
    priceOf: (model) => {
      const found = beginnings.find((name) => model.startsWith(name.slice(0, -1)));
      return prices.get(model) ?? (found === undefined ? undefined : prices.get(found));
    },
  };
}

function checkName(name: string): string {
  if (!/^[^*]{1,255}\*?$/.test(name)) {
    throw new Error(
      `has a model that is no name, and no beginning with * at its end: ${JSON.stringify(name)}`,
    );
  }
  return name;
}

function readPrice(model: string, value: unknown): ModelPrice {
  const at = `models[${JSON.stringify(model)}]`;
  if (!isObject(value)) throw new Error(`${at} must be an object`);
  const unknown = Object.keys(value).find((key) => !Object.hasOwn(KEYS, key));
  if (unknown !== undefined) throw new Error(`${at} has a key that is not known: ${unknown.slice(0, 64)}`);
  const entries = Object.entries(KEYS).map(([key, field]) => {
    const amount = value[key];
    if (!Number.isSafeInteger(amount) || (amount as number) < 0 || (amount as number) > MAX_MICROCENTS) {
      throw new Error(`${at}.${key} must be a whole number from 0 to ${MAX_MICROCENTS}`);
    }
    return [field, BigInt(amount as number)];
  });
  return Object.fromEntries(entries) as ModelPrice;
}
