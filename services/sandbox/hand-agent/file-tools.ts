import { confinePath, type Roots } from "./confine-path.ts";
import { explainFileError, isBinary, openFile } from "./open-file.ts";
import { readLineRange } from "./read-line-range.ts";
import { ToolError } from "./tool-error.ts";
import { writeAtomic } from "./write-atomic.ts";

/** What the file tools need to know of the hand. */
export type FileToolOptions = { roots: Roots; fileBytes: number };

/** readTool returns a text file, or the lines of view_range (from 1; an end of 0 or less is the last line). */
export async function readTool(
  input: { file_path: string; view_range?: number[] },
  options: FileToolOptions,
): Promise<string> {
  const range = input.view_range ?? [];
  if (range.length !== 0 && range.length !== 2) throw new ToolError("read: view_range must be [start, end]");
  const path = await confinePath(options.roots, input.file_path);
  const file = await openFile("read", path, input.file_path);
  try {
    const { size } = await file.stat();
    if (size > options.fileBytes && range.length === 0) {
      throw new ToolError(
        `read: ${input.file_path} has ${size} bytes, more than ${options.fileBytes}; name lines with view_range`,
      );
    }
    const [start, end] = range.length === 2 ? [range[0]!, range[1]!] : [1, 0];
    const bytes = await readLineRange(file, { start, end, maxBytes: options.fileBytes });
    if (isBinary(bytes)) throw new ToolError(`read: ${input.file_path} is a binary file of ${size} bytes`);
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  } finally {
    await file.close();
  }
}

/** writeTool creates or overwrites a file, with the folders above it. */
export async function writeTool(
  input: { file_path: string; content: string },
  options: FileToolOptions,
): Promise<string> {
  const content = Buffer.from(input.content, "utf8");
  if (content.length > options.fileBytes) {
    throw new ToolError(`write: content has ${content.length} bytes, more than ${options.fileBytes}`);
  }
  const path = await confinePath(options.roots, input.file_path);
  await replace("write", path, input.file_path, content);
  return `wrote ${content.length} bytes to ${input.file_path}`;
}

/** editTool replaces old_string, which must occur exactly once unless replace_all is set. */
export async function editTool(
  input: { file_path: string; old_string: string; new_string: string; replace_all?: boolean },
  options: FileToolOptions,
): Promise<string> {
  if (input.old_string === "") throw new ToolError("edit: old_string is empty");
  if (input.old_string === input.new_string)
    throw new ToolError("edit: old_string and new_string are the same");
  const path = await confinePath(options.roots, input.file_path);
  const before = await loadText(path, input.file_path, options.fileBytes);
  const count = before.split(input.old_string).length - 1;
  if (count === 0) throw new ToolError(`edit: old_string not found in ${input.file_path}`);
  if (count > 1 && !input.replace_all) {
    throw new ToolError(`edit: old_string occurs ${count} times in ${input.file_path} and must be unique`);
  }
  const content = Buffer.from(before.split(input.old_string).join(input.new_string), "utf8");
  if (content.length > options.fileBytes)
    throw new ToolError(`edit: ${input.file_path} would become too large`);
  await replace("edit", path, input.file_path, content);
  return `edited ${input.file_path} (${count} replacement${count === 1 ? "" : "s"})`;
}

async function loadText(path: string, shown: string, maxBytes: number): Promise<string> {
  const file = await openFile("edit", path, shown);
  try {
    const { size } = await file.stat();
    if (size > maxBytes) throw new ToolError(`edit: ${shown} has ${size} bytes, more than ${maxBytes}`);
    const bytes = await file.readFile();
    // What is not UTF-8 would come back changed in places nobody asked to edit.
    return new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof ToolError) throw error;
    if (error instanceof TypeError) throw new ToolError(`edit: ${shown} is not UTF-8 text`);
    throw new ToolError(`edit: ${shown}: ${explainFileError(error)}`);
  } finally {
    await file.close();
  }
}

async function replace(tool: string, path: string, shown: string, content: Buffer): Promise<void> {
  try {
    await writeAtomic(path, content);
  } catch (error) {
    throw new ToolError(`${tool}: ${shown}: ${explainFileError(error)}`);
  }
}
