/**
 * The state of the panel as plain data. The host owns it and sends it; the webview only draws it. No vscode, no DOM.
 */
import type { AvailableCommand, PlanEntry, SessionConfigOption, ToolCallStatus, ToolKind } from "./protocol";

/** One entry of the transcript. An entry with a parent is drawn inside the card of that tool call. */
export type Entry = UserEntry | TextEntry | ThoughtEntry | ToolEntry | NoticeEntry | TurnEntry;

interface EntryBase {
  id: string;
  /** The tool call of the sub-agent that made this entry. */
  parent?: string;
}

/** A prompt. */
export interface UserEntry extends EntryBase {
  kind: "user";
  text: string;
  messageId?: string;
  attachments: AttachmentView[];
  /** It was sent to the running turn. */
  steered?: boolean;
  /** The checkpoint before this prompt. */
  checkpoint?: { id: string; files: number; added: number; removed: number };
}

/** An image or document of a prompt. Only small images are shown. */
export interface AttachmentView {
  name: string;
  mime: string;
  /** The image as a data: address. */
  src?: string;
}

/** Text of the model, in Markdown. */
export interface TextEntry extends EntryBase {
  kind: "text";
  text: string;
  messageId?: string;
  /** It is still being streamed. */
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

/** The outcome of a tool call, if its status does not show it. */
export type Outcome = "applied" | "partly" | "rejected" | "cancelled" | "denied";

/** The card of a tool call. Its unfolded part is a Detail, which is sent when it is unfolded. */
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
  /** Milliseconds of the duration in which it waited for the person's decision. */
  waited?: number;
  /** The id of its change set, for the review. */
  changeSet?: string;
  terminalId?: string;
  files: FileSummary[];
  /** It has a Detail. */
  detail: boolean;
  /** The first line of the error. */
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

/** The unfolded part of a tool's card. */
export interface Detail {
  /** The command line, if the call runs a command. */
  command?: string;
  output?: string;
  /** Bytes left out at the beginning of the output. */
  omitted?: number;
  files: FileDiff[];
  images: { mime: string; data: string }[];
  error?: string;
  /** The input as JSON, if the card has nothing better to show. */
  input?: string;
}

/** The change of a file, as lines to read and copy. */
export interface FileDiff extends FileSummary {
  lines: DiffLine[];
  /** Lines left out after these. */
  more: number;
}

export interface DiffLine {
  sign: " " | "+" | "-" | "@";
  text: string;
}

/** A notice to the person. */
export interface NoticeEntry extends EntryBase {
  kind: "notice";
  severity: "info" | "warning" | "error";
  title: string;
  description?: string;
  actions: Action[];
  /** A notice that changes while it is shown, such as a compaction. */
  busy?: boolean;
}

/** The end of a turn. */
export interface TurnEntry extends EntryBase {
  kind: "turn";
  stop: "end_turn" | "max_tokens" | "max_turn_requests" | "refusal" | "cancelled" | "error";
  seconds?: number;
  cost?: number;
  files?: FileSummary[];
}

/** An action that the host can carry out. */
export interface Action {
  id: ActionId;
  label: string;
  /** Its argument, such as the language server to install. */
  about?: string;
}

export type ActionId = "retry" | "restart" | "showLog" | "addKey" | "settings" | "openFolder" | "newSession" | "sessions" | "setBinary" | "continue" | "chooseModel" | "trust" | "install";

/** A pending approval request. It is drawn outside the transcript, where no text of the model can be. */
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
  /** Places outside the project that it uses. */
  outside: string[];
  problems?: { certainty: string; reason?: string; fixed: ProblemView[]; introduced: ProblemView[] };
  /** The commands that were run on it before it was proposed. */
  evidence: EvidenceView[];
  /** What else is known of it: uses of what it changes, what a program made, what the agent claims. */
  notes?: EvidenceNote[];
  /** It is the draft of a whole turn; the project has not changed. */
  draft?: boolean;
  options: { id: string; label: string; kind: "allow_once" | "allow_always" | "reject_once" | "reject_always" }[];
  /** Hunks to review in the editor; 0: none. */
  hunks: number;
  decided?: number;
  /** The name of the agent that asks, if it is a sub-agent. */
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

/** A line of the evidence that no command has given. */
export interface EvidenceNote {
  label: string;
  said: string;
  status: EvidenceView["status"] | "info";
  /** Lines below it: places as path:line. */
  rows: string[];
}

export interface TestView {
  name: string;
  /** Package or file; "" if it is unknown. */
  suite: string;
  status: EvidenceView["status"];
  seconds?: number;
  output?: string;
  /** How the test ended without the change, if that is known. */
  before?: EvidenceView["status"];
}

export interface ProblemView {
  path: string;
  line: number;
  severity: string;
  message: string;
}

/** A question, answered with a form. */
export interface Question {
  requestId: string;
  message: string;
  fields: Field[];
}

/** One field of a question. `other` names the field for an answer in the person's own words. */
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

/** A queued prompt. */
export interface QueuedPrompt {
  id: string;
  text: string;
  attachments: number;
  /** It is sent to the running turn before its next step. */
  steer?: boolean;
}

/** A file, symbol or other thing that a prompt mentions. */
export interface Mention {
  kind: "file" | "folder" | "symbol" | "problems" | "selection" | "terminal" | "diff" | "url";
  /** The mention as it is in the text, with the @. */
  label: string;
  uri?: string;
  path?: string;
  /** Lines from 1. */
  startLine?: number;
  endLine?: number;
}

/** An image or document that is sent with the prompt. */
export interface Attachment {
  id: string;
  name: string;
  mime: string;
  size: number;
  /** Base64. */
  data: string;
}

/** A prompt that the person has written and not sent. */
export interface Draft {
  text: string;
  mentions: Mention[];
  attachments: Attachment[];
  /** When the panel stored it, by the panel's clock. */
  at?: number;
}

/** The selection in the editor. */
export interface SelectionView {
  path: string;
  name: string;
  startLine: number;
  endLine: number;
  /** Nothing is selected: only the file is sent. */
  empty: boolean;
}

/** The connection to the sidecar. */
export interface ConnectionView {
  state: "starting" | "ready" | "quiet" | "failed" | "restarting" | "noFolder" | "untrusted";
  message?: string;
  actions: Action[];
}

/** A file that the last turn wrote without a review and that has hunks which are neither kept nor undone. */
export interface ChangedFile extends FileSummary {
  hunks: number;
}

/** All state that is not an entry. */
export interface Head {
  sessionId?: string;
  title: string;
  cwd: string;
  connection: ConnectionView;
  running: boolean;
  runningSince?: number;
  /** A prompt was sent, or a session is being opened, and there is no answer yet. */
  busy?: string;
  plan: PlanEntry[];
  queue: QueuedPrompt[];
  /** The queue is held: the turn before was stopped or failed. */
  queueHeld: boolean;
  commands: readonly AvailableCommand[];
  options: readonly SessionConfigOption[];
  approvals: Approval[];
  questions: Question[];
  /** The files that the last turn wrote without a review, to keep or undo. */
  changes: readonly ChangedFile[];
  usage?: { used: number; size: number; cost?: number; currency?: string };
  selection?: SelectionView;
  /** The person removed the selection from the context. */
  selectionOff: boolean;
  history: readonly string[];
  can: { steer: boolean; queue: boolean; restore: boolean; image: boolean; search: boolean };
  /** The conversation was restored to an earlier state: so many entries were removed, and can be redone. */
  reverted?: { entries: number; redo: string };
  /** Only the built-in model is available. */
  builtinOnly: boolean;
}

export function emptyHead(): Head {
  return {
    title: "", cwd: "", connection: { state: "starting", actions: [] }, running: false, plan: [], queue: [], queueHeld: false, commands: [], options: [],
    approvals: [], questions: [], changes: [], selectionOff: false, history: [], builtinOnly: false,
    can: { steer: false, queue: false, restore: false, image: true, search: false },
  };
}
