/** A file of the code. */
export interface Source {
  readonly name: string;
  readonly text: string;
}

/**
 * statementNames finds the names of all prepared statements of a service: objects with `name` and `text` next to each
 * other, and first arguments of functions that make one.
 */
export function statementNames(sources: readonly Source[]): string[] {
  const makers = sources.flatMap(({ text }) =>
    [...text.matchAll(/function (\w+)\(\s*name: string[^)]*\): Statement\b/g)].map(
      ([, maker]) => maker as string,
    ),
  );
  const names = sources.flatMap(({ text }) => {
    const objects = [...text.matchAll(/\bname: "([a-z_]+)",\s*text:/g)];
    const made = makers.flatMap((maker) => [
      ...text.matchAll(new RegExp(`\\b${maker}\\(\\s*"([a-z_]+)"`, "g")),
    ]);
    return [...objects, ...made].map(([, name]) => name as string);
  });
  return [...new Set(names)];
}
