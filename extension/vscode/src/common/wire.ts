// The methods and their types, in both directions.
import type * as p from "./protocol";

/** Requests that the sidecar answers. */
export interface AgentRequests {
  initialize: [p.InitializeRequest, p.InitializeResponse];
  "session/new": [p.NewSessionRequest, p.NewSessionResponse];
  "session/load": [p.LoadSessionRequest, p.LoadSessionResponse];
  "session/resume": [p.ResumeSessionRequest, p.ResumeSessionResponse];
  "session/list": [p.ListSessionsRequest, p.ListSessionsResponse];
  "session/close": [p.CloseSessionRequest, p.CloseSessionResponse];
  "session/delete": [p.DeleteSessionRequest, p.DeleteSessionResponse];
  "session/prompt": [p.PromptRequest, p.PromptResponse];
  "session/set_mode": [p.SetSessionModeRequest, p.SetSessionModeResponse];
  "session/set_config_option": [p.SetSessionConfigOptionRequest, p.SetSessionConfigOptionResponse];
  "_session/steering": [p.SteeringRequest, p.SteeringResponse];
  "_pillion/auth/list": [p.AuthListRequest, p.AuthListResponse];
  "_pillion/auth/set": [p.AuthSetRequest, p.AuthSetResponse];
  "_pillion/change/keep": [p.ChangeKeepRequest, p.ChangeKeepResponse];
  "_pillion/change/list": [p.ChangeListRequest, p.ChangeListResponse];
  "_pillion/change/check": [p.ChangeCheckRequest, p.ChangeCheckResponse];
  "_pillion/change/text": [p.ChangeTextRequest, p.ChangeTextResponse];
  "_pillion/change/turn": [p.ChangeTurnRequest, p.ChangeTurnResponse];
  "_pillion/change/undo": [p.ChangeUndoRequest, p.ChangeUndoResponse];
  "_pillion/checkpoint/list": [p.CheckpointListRequest, p.CheckpointListResponse];
  "_pillion/checkpoint/restore": [p.CheckpointRestoreRequest, p.CheckpointRestoreResponse];
  "_pillion/commit/message": [p.CommitMessageRequest, p.CommitMessageResponse];
  "_pillion/edit/next": [p.NextEditRequest, p.NextEditResponse];
  "_pillion/file/search": [p.FileSearchRequest, p.FileSearchResponse];
  "_pillion/permission/explain": [p.PermissionExplainRequest, p.PermissionExplainResponse];
  "_pillion/permission/list": [p.PermissionListRequest, p.PermissionListResponse];
  "_pillion/permission/revoke": [p.PermissionRevokeRequest, p.PermissionRevokeResponse];
  "_pillion/session/export": [p.SessionExportRequest, p.SessionExportResponse];
  "_pillion/session/fork": [p.SessionForkRequest, p.SessionForkResponse];
  "_pillion/session/queue": [p.SessionQueueRequest, p.SessionQueueResponse];
  "_pillion/session/rename": [p.SessionRenameRequest, p.SessionRenameResponse];
  "_pillion/session/status": [p.SessionStatusRequest, p.SessionStatusResponse];
  "_pillion/terminal/create": [p.TerminalCreateRequest, p.TerminalCreateResponse];
  "_pillion/terminal/input": [p.TerminalInputRequest, p.TerminalInputResponse];
  "_pillion/terminal/kill": [p.TerminalKillRequest, p.TerminalKillResponse];
  "_pillion/terminal/list": [p.TerminalListRequest, p.TerminalListResponse];
  "_pillion/terminal/resize": [p.TerminalResizeRequest, p.TerminalResizeResponse];
  "_pillion/terminal/subscribe": [p.TerminalSubscribeRequest, p.TerminalSubscribeResponse];
  "_pillion/tool/call": [p.ToolCallRequest, p.ToolCallResponse];
}

/** Notifications that the sidecar reads. */
export interface AgentNotifications {
  "session/cancel": p.CancelNotification;
  "_pillion/buffer/didOpen": p.DidOpenParams;
  "_pillion/buffer/didChange": p.DidChangeParams;
  "_pillion/buffer/didSave": p.DidSaveParams;
  "_pillion/buffer/didClose": p.DidCloseParams;
  "_pillion/selection/didChange": p.SelectionChanged;
  "_pillion/diagnostics/didChange": p.EditorDiagnostics;
}

/** Requests that the editor answers. */
export interface EditorRequests {
  "session/request_permission": [p.RequestPermissionRequest, p.RequestPermissionResponse];
  "elicitation/create": [p.CreateElicitationRequest, p.CreateElicitationResponse];
  "_pillion/diagnostics/check": [p.EditorCheckRequest, p.EditorCheckResponse];
  "_pillion/workspace/applyEdit": [p.ApplyEditRequest, p.ApplyEditResponse];
}

/** Notifications that the editor reads. */
export interface EditorNotifications {
  "session/update": p.SessionNotification;
  "_pillion/change/updated": p.ChangeUpdated;
  "_pillion/diagnostics/updated": p.DiagnosticsUpdated;
  "_pillion/review/updated": p.ReviewUpdated;
  "_pillion/session/queueUpdated": p.QueueUpdated;
  "_pillion/session/reverted": p.SessionReverted;
  "_pillion/session/statusUpdated": p.SessionStatusUpdated;
  "_pillion/terminal/output": p.TerminalOutput;
  "_pillion/terminal/exited": p.TerminalExited;
}

/** The _pillion methods that this editor answers, for `_meta.pillion.methods` of initialize. */
export const editorMethods: readonly string[] = [
  "_pillion/workspace/applyEdit",
  "_pillion/change/updated",
  "_pillion/diagnostics/check",
  "_pillion/diagnostics/updated",
  "_pillion/review/updated",
  "_pillion/session/queueUpdated",
  "_pillion/session/reverted",
  "_pillion/session/statusUpdated",
  "_pillion/terminal/output",
  "_pillion/terminal/exited",
];
