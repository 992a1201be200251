/** ToolError is a failure that the model is told in words: a wrong path, an input that does not fit. */
export class ToolError extends Error {
  override name = "ToolError";
}
