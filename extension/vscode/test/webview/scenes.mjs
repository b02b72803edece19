// Recorded sessions in small: what the sidecar would send, for pictures and tests.
export const cwd = "/home/ada/shop";

export const options = [
  { id: "mode", name: "Mode", category: "mode", type: "select", currentValue: "build", options: [{ value: "build", name: "build", description: "Reads, edits and runs, and asks before it changes anything" }, { value: "plan", name: "plan", description: "Looks and plans; changes nothing" }] },
  { id: "model", name: "Model", category: "model", type: "select", currentValue: "anthropic/claude-opus-4-5", options: [{ value: "builtin/quickfix", name: "builtin/quickfix", description: "Works offline: fixes what language servers report" }, { value: "anthropic/claude-opus-4-5", name: "Claude Opus 4.5" }, { value: "openai/gpt-5.2", name: "GPT-5.2" }] },
  { id: "thought_level", name: "Thinking", category: "thought_level", type: "select", currentValue: "default", options: [{ value: "default", name: "Default" }, { value: "low", name: "low" }, { value: "high", name: "high" }] },
  { id: "review", name: "Review", type: "select", currentValue: "before", options: [{ value: "before", name: "Before writing" }, { value: "after", name: "After writing" }] },
];

export const commands = [
  { name: "fix", description: "Fix the errors the language servers report" }, { name: "explain", description: "Explain the errors the language servers report" },
  { name: "format", description: "Format" }, { name: "review", description: "Review what changed since the last commit" },
];

export const head = (more = {}) => ({
  sessionId: "s1", title: "Discounts", cwd, connection: { state: "ready", actions: [] }, running: false, plan: [], queue: [], queueHeld: false, commands, options, approvals: [], questions: [], changes: [],
  selectionOff: false, history: ["Run the tests", "Fix the discount of the last item\nand add a test"], builtinOnly: false,
  can: { steer: true, queue: true, restore: true, image: true, search: true }, ...more,
});

export const draft = (text = "") => ({ text, mentions: [], attachments: [] });

const text = (s, messageId = "m1") => ({ sessionUpdate: "agent_message_chunk", messageId, content: { type: "text", text: s } });
const out = (s) => [{ type: "content", content: { type: "text", text: "```\n" + s + "\n```" } }];

export const cartBefore = `package cart

func Total(items []Item) int {
	sum := 0
	for i := 0; i < len(items)-1; i++ {
		sum += items[i].Price
	}
	return sum
}
`;
export const cartAfter = cartBefore.replace("len(items)-1", "len(items)").replace("items[i].Price", "items[i].Price * items[i].Count");

/** A turn with everything in it; `until` stops before the permission. */
export const turn = [
  { sessionUpdate: "agent_thought_chunk", messageId: "m1", content: { type: "text", text: "The total is too small by the last item. Let me look at **Total** and its test first." } },
  text("I'll look at how the total is computed first.\n"),
  { sessionUpdate: "tool_call", toolCallId: "t1", title: `read ${cwd}/cart/cart.go`, kind: "read", status: "completed", locations: [{ path: `${cwd}/cart/cart.go`, line: 3 }], content: out("1\tpackage cart") },
  { sessionUpdate: "tool_call", toolCallId: "t2", title: 'grep "Total\\("', kind: "search", status: "completed", locations: [{ path: `${cwd}/cart/cart.go`, line: 3 }, { path: `${cwd}/cart/cart_test.go`, line: 9 }], content: out("cart/cart.go:3: func Total(items []Item) int {\ncart/cart_test.go:9: got := Total(items)") },
  { sessionUpdate: "tool_call", toolCallId: "t3", title: "go test ./cart", kind: "execute", status: "in_progress", rawInput: { command: "go test ./cart" }, _meta: { pillion: { startedAt: "2026-11-21T10:00:00Z" } } },
  { sessionUpdate: "tool_call_update", toolCallId: "t3", status: "completed", content: out("--- \u001b[31mFAIL\u001b[0m: TestTotal (0.00s)\n    cart_test.go:11: got \u001b[1m30\u001b[0m, want \u001b[32m60\u001b[0m\n\u001b[31mFAIL\u001b[0m\nFAIL\tshop/cart\t0.004s"), rawOutput: { metadata: { exit: 1 } }, _meta: { pillion: { endedAt: "2026-11-21T10:00:03Z" } } },
  text("The loop stops one short, and the count of each item is ignored. Two lines in `cart/cart.go:5` are wrong:\n\n```go cart/cart.go\nfor i := 0; i < len(items); i++ {\n\tsum += items[i].Price * items[i].Count // each piece counts\n}\n```\n\n| Case | Before | After |\n|---|---:|---:|\n| one item | 0 | 30 |\n| two items | 30 | 60 |\n\n1. Change the loop\n2. Run the tests again\n", "m2"),
  { sessionUpdate: "tool_call", toolCallId: "t4", title: "edit cart/cart.go", kind: "edit", status: "in_progress", locations: [{ path: `${cwd}/cart/cart.go`, line: 5 }], content: [{ type: "diff", path: `${cwd}/cart/cart.go`, oldText: cartBefore, newText: cartAfter }] },
];

export const after = [
  { sessionUpdate: "tool_call_update", toolCallId: "t4", status: "completed", _meta: { pillion: { outcome: "applied" } } },
  { sessionUpdate: "tool_call", toolCallId: "t5", title: "Look for other callers", name: "task", kind: "think", status: "in_progress", _meta: { pillion: { tool: "task", startedAt: "2026-11-21T10:00:10Z" } } },
  { sessionUpdate: "tool_call", toolCallId: "t5a", title: 'grep "Total"', kind: "search", status: "completed", _meta: { pillion: { parentToolCallId: "t5" } } },
  { sessionUpdate: "tool_call", toolCallId: "t5b", title: `read ${cwd}/web/checkout.go`, kind: "read", status: "completed", locations: [{ path: `${cwd}/web/checkout.go` }], _meta: { pillion: { parentToolCallId: "t5" } } },
  { sessionUpdate: "tool_call_update", toolCallId: "t5", status: "completed", _meta: { pillion: { endedAt: "2026-11-21T10:00:19Z" } } },
  { sessionUpdate: "tool_call", toolCallId: "t6", title: "edit web/checkout.go", kind: "edit", status: "failed", content: [{ type: "diff", path: `${cwd}/web/checkout.go`, oldText: "a := 1\n", newText: "a := 2\nb := 3\n" }], rawOutput: { error: { kind: "rejected", message: "the user rejected this change: leave the web part alone" } } },
  text("Done: **`Total`** counts every item and its pieces, and the test passes. I left `web/checkout.go` alone, as you said.\n", "m3"),
];

export const approval = (more = {}) => ({
  requestId: "approval-1", toolCallId: "t4", title: "edit cart/cart.go", toolKind: "edit", permission: "edit", always: ["cart/*"], patterns: ["cart/cart.go"], why: "edit is set to ask (default)",
  files: [{ path: `${cwd}/cart/cart.go`, kind: "edit", added: 2, removed: 2 }], outside: [], evidence: [],
  problems: { certainty: "fresh", fixed: [{ path: `${cwd}/cart/cart.go`, line: 5, severity: "error", message: "x" }], introduced: [] },
  options: [{ id: "once", label: "Allow", kind: "allow_once" }, { id: "always-session", label: "Always allow edit cart/* in this session", kind: "allow_always" }, { id: "always-project", label: "Always allow edit cart/* in this project", kind: "allow_always" }, { id: "reject", label: "Reject", kind: "reject_once" }],
  hunks: 2, ...more,
});

const allow = approval().options;
export const commandApproval = approval({ options: [...allow.slice(0, 3), { id: "always-everywhere", label: "Always allow bash rm *, cp * in every project", kind: "allow_always" }, ...allow.slice(3)], requestId: "approval-2", toolCallId: "t3", title: "rm -rf build && cp -r dist ../www", toolKind: "execute", permission: "bash", always: ["rm *", "cp *"], patterns: ["rm -rf build", "cp -r dist ../www"], command: "rm -rf build && cp -r dist ../www", files: [], problems: undefined, hunks: 0, outside: ["/home/ada/www"], why: "no rule allows rm *; asked by default" });

export const question = { requestId: "q1", message: "Which rounding do you want?", fields: [
  { key: "q1", title: "Rounding", description: "Which rounding do you want?", type: "choice", required: false, other: "q1-other", options: [{ value: "half", label: "Half up", description: "as the shop does now" }, { value: "bank", label: "Banker's", description: "as the ledger does" }] },
  { key: "q1-other", title: "Rounding (own words)", type: "text", required: false, options: [] },
] };

/** Entries of a session that said these updates. */
export function entries(panel, updates, { said, end } = {}) {
  const s = new panel.session.SessionState();
  if (said) {
    const u = s.say(said, []);
    u.checkpoint = { id: "c1", files: 2, added: 12, removed: 3 };
  }
  let now = Date.now() - 9000;
  for (const u of updates) s.apply(u, (now += 400));
  if (end) s.endTurn(end, now, { seconds: 21, cost: 0.0421 });
  return { state: s, list: [...s.entries.values()] };
}
