// The texts of prompts that commands send.

export interface AskedProblem {
  line: number; // from 1
  severity: string;
  message: string;
  source?: string | undefined;
}

const most = 20; // problems that the prompt lists; the agent reads the others from the language server

export function fixPrompt(path: string, problems: readonly AskedProblem[]): string {
  if (problems.length === 0) return `Fix the problems in ${path}.`;
  return `Fix ${problems.length === 1 ? "this problem" : "these problems"} in ${path}:\n${list(problems)}`;
}

export function explainPrompt(path: string, first: number, last: number, problems: readonly AskedProblem[]): string {
  const where = first === last ? `line ${first} of ${path}` : `lines ${first} to ${last} of ${path}`;
  if (problems.length > 0) return `Explain ${problems.length === 1 ? "this problem" : "these problems"} at ${where} and what would fix ${problems.length === 1 ? "it" : "them"}. Change nothing.\n${list(problems)}`;
  return `Explain ${where}. Change nothing.`;
}

function list(problems: readonly AskedProblem[]): string {
  const lines = problems.slice(0, most).map((p) => `- line ${p.line}: ${p.severity}: ${p.message.replace(/\s+/g, " ")}${p.source ? ` (${p.source})` : ""}`);
  if (problems.length > most) lines.push(`- and ${problems.length - most} more`);
  return lines.join("\n");
}

export function inlinePrompt(path: string, first: number, last: number, atCursor: boolean, words: string): string {
  const where = atCursor ? `at line ${first}` : first === last ? `line ${first}` : `lines ${first} to ${last}`;
  return `Change ${path}, ${where}: ${words}\n\nMake the edit; change nothing that this does not ask for.`;
}

/** Lines count from 1. */
export function fixFindingPrompt(path: string, first: number, last: number, message: string): string {
  const where = first === last ? `${path}:${String(first)}` : `${path}:${String(first)}-${String(last)}`;
  return `Fix this finding of a review at ${where}:\n${fenced(message)}\nCheck first that it is right; if it is not, say why and change nothing.`;
}

export function reviewPrompt(target: string): string {
  return `/review ${target}`.trim();
}

/** The failure of a test, as its extension reported it. Lines count from 1. */
export interface TestFailure {
  text: string;
  expected?: string | undefined;
  actual?: string | undefined;
  path?: string | undefined;
  line?: number | undefined;
}

export function fixTestPrompt(name: string, path: string, line: number | undefined, failure: TestFailure | undefined): string {
  const where = path ? ` (${path}${line === undefined ? "" : `:${line}`})` : "";
  if (!failure) return `Run the test ${name}${where}. If it fails, find the cause and fix it.`;
  const at = failure.path ? ` at ${failure.path}:${failure.line ?? 1}` : "";
  const compared = failure.expected !== undefined && failure.actual !== undefined ? `\nExpected:\n${fenced(failure.expected)}\nActual:\n${fenced(failure.actual)}` : "";
  return `The test ${name}${where} failed${at}:\n${fenced(failure.text)}${compared}\nFind the cause and fix it. Change the test only if it is wrong.`;
}

export function fixCommandPrompt(command: string, exitCode: number, cwd: string, output: string): string {
  const printed = output.trim() === "" ? "Its output is not known: it printed nothing, or ended before it could be read." : `The end of its output:\n${fenced(output.trim())}`;
  return `This command failed with exit code ${exitCode}${cwd ? ` in ${cwd}` : ""}:\n${fenced(command)}\n${printed}\nFind the cause and fix it.`;
}

/** A text as a fenced block of code; the fence is longer than every fence in the text. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((m) => m[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text.replace(/\n$/, "")}\n${fence}`;
}
