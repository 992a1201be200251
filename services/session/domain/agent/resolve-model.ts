import type { Shape } from "../json-shape.ts";
import { isObject } from "../json-shape.ts";
import type { Model } from "./definition.ts";

const EFFORTS = ["low", "medium", "high", "xhigh", "max"] as const;
const DEFAULT_EFFORT = "high";

/** resolveModel fills in what a model leaves out; `current` is the model that an update replaces. */
export function resolveModel(shape: Shape, path: string, value: unknown, current?: Model): Model {
  const nothing: Model = { id: "", effort: { type: DEFAULT_EFFORT }, speed: "standard" };
  if (value === undefined || value === null) {
    shape.wrong(path, "is required");
    return nothing;
  }
  if (typeof value === "string") {
    const id = shape.string(path, value, { min: 1, max: 256 }) ?? "";
    return { ...nothing, id, effort: keptEffort(id, current) };
  }
  const model = shape.object(path, value, ["id", "effort", "speed", "inference_geo"]);
  if (!model) return nothing;
  const id = shape.string(`${path}.id`, model.id, { min: 1, max: 256 }) ?? "";
  const { effort, speed, inference_geo: geo } = model;
  return {
    id,
    effort:
      effort === undefined || effort === null
        ? keptEffort(id, current)
        : readEffort(shape, `${path}.effort`, effort),
    speed:
      speed === undefined || speed === null
        ? "standard"
        : (shape.oneOf(`${path}.speed`, speed, ["standard", "fast"]) ?? "standard"),
    ...(geo === undefined || geo === null
      ? {}
      : { inference_geo: shape.string(`${path}.inference_geo`, geo, { min: 1, max: 64 }) ?? "" }),
  };
}

// An effort that an update leaves out is kept as long as the model stays the same.
function keptEffort(id: string, current: Model | undefined): { type: string } {
  return current?.id === id ? { ...current.effort } : { type: DEFAULT_EFFORT };
}

function readEffort(shape: Shape, path: string, value: unknown): { type: string } {
  if (!isObject(value)) return { type: shape.oneOf(path, value, EFFORTS) ?? DEFAULT_EFFORT };
  shape.object(path, value, ["type"]);
  return { type: shape.oneOf(`${path}.type`, value.type, EFFORTS) ?? DEFAULT_EFFORT };
}
