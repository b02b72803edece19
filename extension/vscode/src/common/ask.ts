// The words of prompts that a command sends for the person.

export interface AskedProblem {
  line: number; // from 1
  severity: string;
  message: string;
  source?: string | undefined;
}

const most = 20; // problems that are named; the agent reads the others from the language server

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
