/** One tool as the model is offered it. */
export interface OfferedTool {
  name: string;
  description: string;
  inputSchema: unknown;
}

/**
 * The built-in tools that a hand runs. web_search and web_fetch are not among them: hands have no network and nothing
 * else runs them yet, so the model is not offered what would always fail.
 */
export const BUILT_IN_TOOLS: readonly OfferedTool[] = [
  {
    name: "bash",
    description:
      "Runs a command in a shell that keeps its folder and variables between calls. There is no terminal and no " +
      "network. Set restart to true to begin with a fresh shell.",
    inputSchema: object({
      command: { type: "string", description: "The command to run." },
      restart: { type: "boolean", description: "Start the shell anew." },
      timeout_ms: { type: "integer", description: "Longest time the command may take, in milliseconds." },
    }),
  },
  {
    name: "read",
    description: "Reads a text file and answers with numbered lines.",
    inputSchema: object(
      {
        file_path: { type: "string", description: "Path of the file." },
        view_range: {
          type: "array",
          items: { type: "integer" },
          minItems: 2,
          maxItems: 2,
          description: "First and last line, from 1; a last line of 0 or less means the end of the file.",
        },
      },
      ["file_path"],
    ),
  },
  {
    name: "write",
    description: "Writes a file, making its folders; what was there before is replaced.",
    inputSchema: object(
      {
        file_path: { type: "string", description: "Path of the file." },
        content: { type: "string", description: "The whole new content." },
      },
      ["file_path", "content"],
    ),
  },
  {
    name: "edit",
    description: "Replaces a text in a file. The text must occur exactly once unless replace_all is true.",
    inputSchema: object(
      {
        file_path: { type: "string", description: "Path of the file." },
        old_string: { type: "string", description: "The text to replace, exactly as it stands there." },
        new_string: { type: "string", description: "The text to put in its place." },
        replace_all: { type: "boolean", description: "Replace every occurrence." },
      },
      ["file_path", "old_string", "new_string"],
    ),
  },
  {
    name: "glob",
    description: "Lists files whose path matches a pattern such as src/**/*.ts, newest first.",
    inputSchema: object(
      {
        pattern: { type: "string", description: "The pattern." },
        path: { type: "string", description: "Folder to search in." },
      },
      ["pattern"],
    ),
  },
  {
    name: "grep",
    description: "Searches the content of files for a regular expression.",
    inputSchema: object(
      {
        pattern: { type: "string", description: "The regular expression." },
        path: { type: "string", description: "File or folder to search in." },
      },
      ["pattern"],
    ),
  },
];

function object(properties: Record<string, unknown>, required: string[] = []): unknown {
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}) };
}
