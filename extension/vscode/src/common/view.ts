/**
 * What the panel shows, as plain data. The host holds it and sends it; the webview draws it and holds no truth. No vscode, no DOM.
 */
import type { AvailableCommand, PlanEntry, SessionConfigOption, ToolCallStatus, ToolKind } from "./protocol";

/** One entry of the transcript. Entries with a parent are drawn inside the card of that tool call. */
export type Entry = UserEntry | TextEntry | ThoughtEntry | ToolEntry | NoticeEntry | TurnEntry;

interface EntryBase {
  id: string;
  /** The tool call whose sub-agent this belongs to. */
  parent?: string;
}

/** What the person said. */
export interface UserEntry extends EntryBase {
  kind: "user";
  text: string;
  messageId?: string;
  attachments: AttachmentView[];
  /** Spoken into a running turn. */
  steered?: boolean;
  /** The state before this prompt, to go back to. */
  checkpoint?: { id: string; files: number; added: number; removed: number };
}

/** An image or document on a prompt. Only small images are shown. */
export interface AttachmentView {
  name: string;
  mime: string;
  /** data: address of an image. */
  src?: string;
}

/** The model's words, in Markdown. */
export interface TextEntry extends EntryBase {
  kind: "text";
  text: string;
  messageId?: string;
  /** More is coming. */
  open?: boolean;
}

/** The model's thinking. */
export interface ThoughtEntry extends EntryBase {
  kind: "thought";
  text: string;
  messageId?: string;
  open?: boolean;
  startedAt?: number;
  endedAt?: number;
}

/** How a tool call ended, where its status alone does not say. */
export type Outcome = "applied" | "partly" | "rejected" | "cancelled" | "denied";

/** A tool call's card. What unfolds is a Detail, sent when it is unfolded. */
export interface ToolEntry extends EntryBase {
  kind: "tool";
  title: string;
  tool?: string;
  toolKind: ToolKind;
  status: ToolCallStatus;
  outcome?: Outcome;
  locations: Place[];
  startedAt?: number;
  endedAt?: number;
  /** Milliseconds of that in which it waited for the person's decision. */
  waited?: number;
  /** Its change set, for the review. */
  changeSet?: string;
  terminalId?: string;
  files: FileSummary[];
  /** There is something to unfold. */
  detail: boolean;
  /** First line of an error. */
  error?: string;
  exitCode?: number;
}

export interface Place {
  path: string;
  line?: number;
}

export interface FileSummary {
  path: string;
  kind: "edit" | "create" | "delete" | "rename";
  added: number;
  removed: number;
}

/** What a tool's card holds when it is unfolded. */
export interface Detail {
  /** The command line, of an execute call. */
  command?: string;
  output?: string;
  /** Bytes of output left out at its start. */
  omitted?: number;
  files: FileDiff[];
  images: { mime: string; data: string }[];
  error?: string;
  /** What went in, where the card has nothing better to show. */
  input?: string;
}

/** A file's change, as lines to read and copy. */
export interface FileDiff extends FileSummary {
  lines: DiffLine[];
  /** Lines left out after these. */
  more: number;
}

export interface DiffLine {
  sign: " " | "+" | "-" | "@";
  text: string;
}

/** Something the person should know. */
export interface NoticeEntry extends EntryBase {
  kind: "notice";
  severity: "info" | "warning" | "error";
  title: string;
  description?: string;
  actions: Action[];
  /** A notice that changes while it is shown: a compaction. */
  busy?: boolean;
}

/** A turn is over. */
export interface TurnEntry extends EntryBase {
  kind: "turn";
  stop: "end_turn" | "max_tokens" | "max_turn_requests" | "refusal" | "cancelled" | "error";
  seconds?: number;
  cost?: number;
  files?: FileSummary[];
}

/** A next step that the host knows how to take. */
export interface Action {
  id: ActionId;
  label: string;
  /** What it is about: the language server that is to be installed. */
  about?: string;
}

export type ActionId = "retry" | "restart" | "showLog" | "addKey" | "settings" | "openFolder" | "newSession" | "sessions" | "setBinary" | "continue" | "chooseModel" | "trust" | "install";

/** A permission that waits for the person. Drawn outside the transcript, where no model text can be. */
export interface Approval {
  requestId: string;
  toolCallId: string;
  title: string;
  toolKind: ToolKind;
  permission?: string;
  /** What "always" would allow. */
  always: string[];
  patterns: string[];
  why?: string;
  command?: string;
  files: FileSummary[];
  /** Places outside the project that it touches. */
  outside: string[];
  problems?: { certainty: string; reason?: string; fixed: ProblemView[]; introduced: ProblemView[] };
  /** What was run on it before it was proposed. */
  evidence: EvidenceView[];
  /** All that a turn did in a draft; the project has not been touched. */
  draft?: boolean;
  options: { id: string; label: string; kind: "allow_once" | "allow_always" | "reject_once" | "reject_always" }[];
  /** Hunks to review in the editor; 0: nothing to review there. */
  hunks: number;
  decided?: number;
  /** The agent that asks, when it is a sub-agent. */
  agent?: string;
}

/** A command that was run on a draft, and how it ended. */
export interface EvidenceView {
  command: string;
  status: "passed" | "failed" | "notRun" | "skipped";
  exitCode?: number;
  seconds?: number;
  /** Why it did not run. */
  reason?: string;
  output?: string;
  /** The files have changed since it ran. */
  stale: boolean;
  tests: TestView[];
}

export interface TestView {
  name: string;
  /** Package or file; "" where it is not known. */
  suite: string;
  status: EvidenceView["status"];
  seconds?: number;
  output?: string;
  /** How it ended without the change, where that is known. */
  before?: EvidenceView["status"];
}

export interface ProblemView {
  path: string;
  line: number;
  severity: string;
  message: string;
}

/** A question with a form for an answer. */
export interface Question {
  requestId: string;
  message: string;
  fields: Field[];
}

/** One field of a question. `other` names the field that takes own words instead. */
export interface Field {
  key: string;
  title: string;
  description?: string;
  type: "choice" | "choices" | "text" | "number" | "integer" | "boolean";
  options: { value: string; label: string; description?: string }[];
  other?: string;
  required: boolean;
  initial?: string | number | boolean | string[];
  min?: number;
  max?: number;
}

/** A prompt that waits for its turn. */
export interface QueuedPrompt {
  id: string;
  text: string;
  attachments: number;
  /** It goes into the running turn at its next step. */
  steer?: boolean;
}

/** A thing mentioned in a prompt. */
export interface Mention {
  kind: "file" | "folder" | "symbol" | "problems" | "selection" | "terminal" | "diff" | "url";
  /** As it stands in the text, with the @. */
  label: string;
  uri?: string;
  path?: string;
  /** Lines from 1. */
  startLine?: number;
  endLine?: number;
}

/** A picture or document that goes along. */
export interface Attachment {
  id: string;
  name: string;
  mime: string;
  size: number;
  /** Base64. */
  data: string;
}

/** What the person has written and not yet sent. */
export interface Draft {
  text: string;
  mentions: Mention[];
  attachments: Attachment[];
  /** When the panel had it so, by the panel's own clock. */
  at?: number;
}

/** The selection in the editor. */
export interface SelectionView {
  path: string;
  name: string;
  startLine: number;
  endLine: number;
  /** Nothing is selected: the file alone. */
  empty: boolean;
}

/** The connection to the sidecar. */
export interface ConnectionView {
  state: "starting" | "ready" | "quiet" | "failed" | "restarting" | "noFolder" | "untrusted";
  message?: string;
  actions: Action[];
}

/** A file that the last turn wrote without a review, as far as its hunks are neither kept nor undone. */
export interface ChangedFile extends FileSummary {
  hunks: number;
}

/** All that is not an entry. */
export interface Head {
  sessionId?: string;
  title: string;
  cwd: string;
  connection: ConnectionView;
  running: boolean;
  runningSince?: number;
  /** A prompt or a session is on its way. */
  busy?: string;
  plan: PlanEntry[];
  queue: QueuedPrompt[];
  /** The queue waits for the person: the turn before was stopped or failed. */
  queueHeld: boolean;
  commands: readonly AvailableCommand[];
  options: readonly SessionConfigOption[];
  approvals: Approval[];
  questions: Question[];
  /** What the last turn wrote without a review, to keep or undo. */
  changes: readonly ChangedFile[];
  usage?: { used: number; size: number; cost?: number; currency?: string };
  selection?: SelectionView;
  /** The person took the selection out of what is sent. */
  selectionOff: boolean;
  history: readonly string[];
  can: { steer: boolean; queue: boolean; restore: boolean; image: boolean; search: boolean };
  /** The conversation was taken back: these many entries are out, and can come back. */
  reverted?: { entries: number; redo: string };
  /** Nothing but the built-in model is set up. */
  builtinOnly: boolean;
}

export function emptyHead(): Head {
  return {
    title: "", cwd: "", connection: { state: "starting", actions: [] }, running: false, plan: [], queue: [], queueHeld: false, commands: [], options: [],
    approvals: [], questions: [], changes: [], selectionOff: false, history: [], builtinOnly: false,
    can: { steer: false, queue: false, restore: false, image: true, search: false },
  };
}
