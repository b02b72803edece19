-- Proposals in the file's own window.
local t = dofile(vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h") .. "/helper.lua")
local test, eq, match, wait = t.test, t.eq, t.match, t.wait

local ten = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"

-- A turn that reads a file and proposes to shout three of its lines.
local function three(after)
  return {
    { tool = "read", input = { filePath = "a.txt" } },
    { tool = "multiedit", input = { filePath = "a.txt", edits = { { oldString = "two", newString = "TWO\nand more" }, { oldString = "five\n", newString = "" }, { oldString = "nine", newString = "NINE" } } } },
    after or "Done.",
  }
end

local function propose(steps, files, options)
  local w = t.world(steps or three(), files or { ["a.txt"] = ten }, options)
  vim.cmd("edit a.txt")
  vim.cmd("Pillion shout")
  return w, t.review()
end

local function marks(buf)
  local view = require("pillion.review_view")
  local old, new, plain = 0, 0, 0
  for _, m in ipairs(vim.api.nvim_buf_get_extmarks(buf, view.ns, 0, -1, { details = true })) do
    if m[4].line_hl_group == "PillionDelete" then
      old = old + 1
    end
    plain = plain + (m[4].virt_lines and 0 or 1)
    new = new + #(m[4].virt_lines or {})
  end
  if vim.fn.has("nvim-0.8") == 0 and plain > 0 then -- 0.7 does not tell the group: all that are neither lines nor places
    old = plain - #require("pillion.review").open[1].hunks
  end
  return old, new
end

-- Every extmark of a buffer, whichever namespace it is in.
local function all_marks(buf)
  local out = {}
  for _, ns in pairs(vim.api.nvim_get_namespaces()) do
    vim.list_extend(out, vim.api.nvim_buf_get_extmarks(buf, ns, 0, -1, { details = true }))
  end
  table.sort(out, function(a, b)
    return a[2] < b[2]
  end)
  return out
end

local function keys(s)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(s, true, false, true), "xm", false)
end

test("a hunk is accepted, one rejected, one edited, before anything is written", function()
  local w, review = propose()
  eq(3, #review.hunks)
  eq("1 file, 3 hunks", review:headline():match("^[^·]+"):gsub("%s+$", ""))
  eq({ 3, 3 }, { marks(0) })
  eq(ten, t.read(w.project .. "/a.txt"))
  vim.cmd("Pillion review")
  eq(2, vim.api.nvim_win_get_cursor(0)[1])
  keys("ga")
  eq(5, vim.api.nvim_win_get_cursor(0)[1], "the next hunk")
  keys("gr")
  eq(9, vim.api.nvim_win_get_cursor(0)[1])
  keys("ge")
  eq({ "NINE" }, t.lines())
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { "Nine!", "and a half" })
  vim.cmd("write")
  t.idle()
  eq("one\nTWO\nand more\nthree\nfour\nfive\nsix\nseven\neight\nNine!\nand a half\nten\n", table.concat(t.lines(vim.fn.bufnr("a.txt")), "\n") .. "\n")
  -- The model learns what was rejected and what was made of it.
  local seen = t.seen(w)
  local said = vim.json.encode(seen[3].messages[#seen[3].messages])
  match("five", said)
  match("Nine!", said)
  eq({ 0, 0 }, { marks(vim.fn.bufnr("a.txt")) })
end)

test("the request shows its file and what it does; nothing is called done before", function()
  local w = propose()
  local text = t.chat_text()
  match("1 file, 3 hunks", text)
  match("a.txt", text)
  match("%(1%) Allow", text)
  t.ok(not text:find("✓ multiedit", 1, true), "called done")
  eq(ten, t.read(w.project .. "/a.txt"))
  vim.cmd("Pillion accept all")
  t.idle()
  match("✓ multiedit", t.chat_text())
  match("3 accepted", t.chat_text())
end)

test("what was rejected stays readable in the chat", function()
  propose()
  vim.cmd("Pillion reject all")
  t.idle()
  local text = t.chat_text()
  match("3 rejected", text)
  match("%+TWO", text)
  match("%-nine", text)
end)

test("nothing takes the focus; closing means later; a message does not approve", function()
  local w, review = propose()
  local buf = vim.api.nvim_get_current_buf()
  eq("a.txt", vim.fn.expand("%:t"))
  eq({ 1, 0 }, vim.api.nvim_win_get_cursor(0))
  vim.cmd("Pillion and another thing")
  eq(false, review.closed)
  vim.cmd("enew")
  vim.cmd("bwipeout! " .. buf)
  eq(false, review.closed)
  eq(ten, t.read(w.project .. "/a.txt"))
  vim.cmd("Pillion review")
  eq("a.txt", vim.fn.expand("%:t"))
  eq({ 3, 3 }, { marks(0) })
  vim.cmd("Pillion reject all not now")
  wait("the end", function()
    return review.closed
  end)
  t.idle()
end)

test("two edits of one file are reviewed against the text as it is then", function()
  local w = propose({
    { tool = "read", input = { filePath = "a.txt" } },
    { tool = "edit", input = { filePath = "a.txt", oldString = "two", newString = "TWO" } },
    { tool = "edit", input = { filePath = "a.txt", oldString = "nine", newString = "NINE" } },
    "Done.",
  })
  vim.cmd("Pillion accept all")
  local second = wait("the second proposal", function()
    local r = require("pillion.review").open[1]
    return r and r.hunks[1].new[1] == "NINE" and r
  end)
  eq({ "nine" }, second.hunks[1].old)
  vim.cmd("Pillion accept all")
  t.idle()
  eq("TWO", t.lines()[2])
  eq("NINE", t.lines()[9])
  eq(ten, t.read(w.project .. "/a.txt"), "the buffer stays unsaved")
end)

test("a hunk is taken back after it was applied, with later typing kept", function()
  propose()
  vim.cmd("Pillion accept all")
  t.idle()
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { "mine" })
  vim.cmd("Pillion changes")
  wait("the list", function()
    return vim.fn.getqflist({ title = 0 }).title == "Pillion: changed files"
  end)
  vim.cmd("cclose")
  vim.cmd("buffer a.txt")
  local lines = t.lines()
  for i, l in ipairs(lines) do
    if l == "NINE" then
      vim.api.nvim_win_set_cursor(0, { i, 0 })
    end
  end
  vim.cmd("Pillion undo hunk")
  wait("the undo", function()
    return vim.tbl_contains(t.lines(), "nine")
  end)
  eq("mine", t.lines()[1])
  eq("TWO", t.lines()[2])
end)

test("undo takes the prompt's changes back, redo brings them again", function()
  local w = propose()
  vim.cmd("Pillion accept all")
  t.idle()
  vim.cmd("silent write")
  vim.cmd("Pillion undo")
  wait("the old text", function()
    return t.lines()[2] == "two"
  end)
  wait("the note", function()
    return t.chat_text():find("Undone: 1 restored. :Pillion redo brings it back.", 1, true)
  end)
  vim.cmd("Pillion redo")
  wait("the new text", function()
    return t.lines()[2] == "TWO"
  end)
  wait("the note", function()
    return t.chat_text():find("Redone: 1 restored.", 1, true)
  end)
  t.ok(w)
end)

test("a file that is opened for a proposal has the name that :edit gives it", function()
  t.world(three(), { ["a.txt"] = ten })
  vim.cmd("Pillion shout")
  t.review()
  vim.cmd("Pillion review")
  eq("a.txt", vim.fn.bufname())
  vim.cmd("Pillion reject all")
  t.idle()
end)

test("the chat keeps its share of the screen", function()
  t.world({ "Hello." }, {})
  vim.o.columns = 200
  vim.cmd("Pillion hello")
  t.idle()
  local win = require("pillion.chat").window()
  eq(80, vim.api.nvim_win_get_width(win))
  vim.o.columns = 100
  vim.cmd("doautocmd VimResized")
  eq(40, vim.api.nvim_win_get_width(win))
  vim.o.columns = 200
  vim.cmd("doautocmd VimResized")
  eq(80, vim.api.nvim_win_get_width(win))
end)

test("Pillion checkpoint restores what is chosen", function()
  propose()
  vim.cmd("Pillion accept all")
  t.idle()
  local shown = t.select("before: shout", "Files only")
  vim.cmd("Pillion checkpoint")
  wait("the old text", function()
    return t.lines()[2] == "two"
  end)
  match("1 file", shown[1])
end)

test("unsaved text is what is read and edited, and stays unsaved", function()
  local w = t.world({
    { tool = "read", input = { filePath = "a.txt" } },
    { tool = "edit", input = { filePath = "a.txt", oldString = "unsaved", newString = "UNSAVED" } },
    "Done.",
  }, { ["a.txt"] = ten })
  vim.cmd("edit a.txt")
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { "unsaved" })
  vim.cmd("Pillion shout")
  t.review()
  vim.cmd("Pillion accept all")
  t.idle()
  eq("UNSAVED", t.lines()[1])
  eq(true, vim.bo.modified)
  eq(ten, t.read(w.project .. "/a.txt"))
end)

test("clean buffers follow the disk after a command, dirty ones win", function()
  local w = t.world({
    { tool = "bash", input = { command = "echo changed > a.txt; echo changed > b.txt", description = "write" } },
    "Done.",
  }, { ["a.txt"] = "old\n", ["b.txt"] = "old\n" })
  vim.o.autoread = true
  vim.cmd("edit b.txt")
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { "mine" })
  vim.o.hidden = true
  vim.cmd("edit a.txt")
  vim.cmd("Pillion write")
  wait("an ask or the end", function()
    return require("pillion.approval").open[1] or (t.session() and t.session().state == "ready" and not t.session():busy())
  end)
  if require("pillion.approval").open[1] then
    vim.cmd("Pillion accept")
  end
  t.idle()
  wait("the new text", function()
    return t.lines(vim.fn.bufnr("a.txt"))[1] == "changed"
  end)
  eq("mine", t.lines(vim.fn.bufnr("b.txt"))[1])
  eq("changed\n", t.read(w.project .. "/b.txt"))
end)

test("typing in a hunk's own lines while it is under review is an error with the fresh text", function()
  local w = propose()
  vim.api.nvim_buf_set_lines(0, 1, 2, false, { "my own two" })
  vim.cmd("Pillion accept all")
  t.idle()
  local lines = table.concat(t.lines(), "\n")
  match("my own two", lines)
  local text = t.chat_text()
  match("Not applied: a.txt has changed in the same lines since", text)
  t.ok(not text:find("3 accepted", 1, true), "said to be accepted")
  t.ok(not text:find("make your change against", 1, true), "text for the model")
  t.ok(not lines:find("TWO", 1, true), "written over")
  local seen = t.seen(w)
  match("my own two", vim.json.encode(seen[3].messages))
end)

test("typing elsewhere moves the hunks and is kept", function()
  propose()
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "a line of mine", "another" })
  local view = require("pillion.review_view")
  local review = t.review()
  eq({ 3, 6, 10 }, vim.tbl_map(view.row, review.hunks))
  vim.cmd("Pillion accept all")
  t.idle()
  eq("a line of mine\nanother\none\nTWO\nand more\nthree\nfour\nsix\nseven\neight\nNINE\nten", table.concat(t.lines(), "\n"))
end)

test("one undo takes the accepted set back, and only it", function()
  propose()
  vim.api.nvim_buf_set_lines(0, 6, 7, false, { "SEVEN" })
  vim.cmd("Pillion accept all")
  t.idle()
  eq("TWO", t.lines()[2])
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { "typed after" })
  vim.cmd("silent undo")
  eq("one", t.lines()[1])
  eq("TWO", t.lines()[2])
  vim.cmd("silent undo")
  eq({ "two", "five", "SEVEN", "nine" }, { t.lines()[2], t.lines()[5], t.lines()[7], t.lines()[9] })
  vim.cmd("silent undo")
  eq("seven", t.lines()[7])
end)

test("line ends, encodings, a BOM and a missing last newline stay as they are", function()
  local cases = {
    dos = { "one\r\ntwo\r\nthree\r\n", "one\r\nTWO\r\nthree\r\n" },
    noeol = { "one\ntwo\nthree", "one\nTWO\nthree" },
    bom = { "\239\187\191one\ntwo\nthree\n", "\239\187\191one\nTWO\nthree\n" },
    latin = { "one\ntwo\nth\233\n", "one\nTWO\nth\233\n" },
    mixed = { "one\r\ntwo\nthree\r\n", "one\r\nTWO\nthree\r\n" },
    invalid = { "one\n\255\254\ntwo\nthree\233\n", "one\n\255\254\nTWO\nthree\233\n" },
    utf = { "eins\n😀 two ü\ndrei\n", "eins\n😀 TWO ü\ndrei\n" },
  }
  local steps, files, names = {}, {}, vim.tbl_keys(cases)
  table.sort(names)
  for _, n in ipairs(names) do
    files[n .. ".txt"] = cases[n][1]
    table.insert(steps, { tool = "read", input = { filePath = n .. ".txt" } })
    table.insert(steps, { tool = "edit", input = { filePath = n .. ".txt", oldString = "two", newString = "TWO" } })
  end
  table.insert(steps, "Done.")
  local w = t.world(steps, files)
  vim.o.hidden = true
  for _, n in ipairs(names) do
    vim.cmd("edit " .. (n == "invalid" and "++enc=utf-8 ++bad=keep " or "") .. n .. ".txt")
  end
  vim.o.fixeol = false
  for _, b in ipairs(vim.api.nvim_list_bufs()) do
    vim.bo[b].fixeol = false
  end
  vim.cmd("Pillion shout")
  for _ = 1, #names do
    local review = t.review()
    vim.cmd("Pillion accept all")
    wait("the decision", function()
      return review.closed
    end)
  end
  t.idle()
  vim.cmd("silent wall")
  for _, n in ipairs(names) do
    eq(cases[n][2], t.read(w.project .. "/" .. n .. ".txt"), n)
  end
end)

test("a problem that a change brings is told before it is written", function()
  propose({
    { tool = "read", input = { filePath = "main.go" } },
    { tool = "edit", input = { filePath = "main.go", oldString = "println(1)", newString = "println(missing)" } },
    "Done.",
  }, { ["go.mod"] = "module x\n\ngo 1.21\n", ["main.go"] = "package main\n\nfunc main() {\n\tprintln(1)\n}\n", ["a.txt"] = "" })
  local review = t.review()
  local d = review.diagnostics
  t.ok(d, "no word about problems")
  if d.certainty == "fresh" then
    match("introduces 1", review:headline())
    match("missing", t.chat_text())
  else
    t.ok(not review:headline():find("introduces 0", 1, true), "says there are none")
  end
  vim.cmd("Pillion reject all")
  t.idle()
end)

test("the verdict counts errors, lesser problems apart, and says why it waits", function()
  propose({ { tool = "edit", input = { filePath = "a.txt", oldString = "one", newString = "ONE" } }, "Done." }, { ["a.txt"] = "one\n" })
  local review = t.review()
  local function problems(n, severity)
    local list = {}
    for i = 1, n do
      list[i] = { path = "a.txt", line = i, column = 1, severity = severity, message = "m" }
    end
    return list
  end
  for want, d in pairs({
    ["fixes 0 errors, introduces 1; 9 warnings or hints fixed"] = { certainty = "fresh", fixed = problems(9, "warning"), introduced = problems(1, "error") },
    ["fixes 1 error, introduces 0; 1 warning or hint introduced"] = { certainty = "fresh", fixed = problems(1, "error"), introduced = problems(1, "hint") },
    ["problems not checked yet: gopls is loading the workspace"] = { certainty = "pending", reason = "gopls is loading the workspace", fixed = {}, introduced = {} },
    ["problems cannot be checked"] = { certainty = "unavailable", fixed = {}, introduced = {} },
  }) do
    review.diagnostics = d
    eq(want, review:problems())
  end
  vim.cmd("Pillion reject all")
  t.idle()
end)

test("the verdict follows the decisions", function()
  propose({
    { tool = "read", input = { filePath = "main.go" } },
    { tool = "multiedit", input = { filePath = "main.go", edits = { { oldString = "println(1)", newString = "println(missing)" }, { oldString = "println(9)", newString = "println(8)" } } } },
    "Done.",
  }, { ["go.mod"] = "module x\n\ngo 1.21\n", ["main.go"] = "package main\n\nfunc main() {\n\tprintln(1)\n\n\tprintln(2)\n\tprintln(3)\n\n\tprintln(9)\n}\n", ["a.txt"] = "" })
  local review = t.review()
  wait("the verdict", function()
    return review.diagnostics and review.diagnostics.certainty == "fresh"
  end)
  match("introduces 1", review:headline())
  vim.cmd("Pillion review")
  keys("gr")
  eq("reject", review.hunks[1].decision)
  wait("the verdict without the first hunk", function()
    return not review.checking
  end)
  match("introduces 0", review:headline())
  keys("gz")
  wait("the verdict with it", function()
    return not review.checking
  end)
  match("introduces 1", review:headline())
  vim.cmd("Pillion reject all")
  t.idle()
end)

test("evidence tells packages from tests, and declarations of one name apart", function()
  local lines = require("pillion.evidence").lines({
    checks = { { command = "go test", status = "failed", tests = { { name = "(package)", suite = "x/p", status = "failed" }, { name = "TestA", suite = "x/q", status = "failed", before = "failed" }, { name = "TestB", suite = "x/q", status = "passed" } } } },
    uses = {
      { name = "T.M", kind = "method", path = "/p/a.go", line = 3, what = "body", uses = 0, files = 0, inside = 0 },
      { name = "T.M", kind = "method", path = "/p/b.go", line = 4, what = "removed", uses = 2, files = 1, inside = 2 },
      { name = "f", kind = "function", path = "/p/b.go", line = 9, what = "body", uses = 0, files = 0, inside = 0 },
    },
  }, "/p")
  eq({
    "FAILED: go test (1 of 2 tests failed, 1 suite failed as a whole, 1 before the change too)",
    "  x/p",
    "  TestA (x/q), failed before too",
    "method T.M (a.go:3) changed inside: no other use is known in this project",
    "method T.M (b.go:4) is removed or renamed: 2 uses in 1 file, 2 of them in this proposal",
    "function f changed inside: no other use is known in this project",
  }, vim.tbl_map(function(l)
    return l[1]
  end, lines))
end)

test("a draft's proposal shows its evidence, and a verified rename is one decision", function()
  local w = t.world({
    { tool = "bash", input = { command = [[sed -i 's/\bLoad\b/Fetch/' *.go && sed -i 's/return 3/return 4/' lib.go]] } },
    "All tests pass.",
  }, {
    ["go.mod"] = "module x\n\ngo 1.21\n",
    ["lib.go"] = "package x\n\nfunc Load() int { return 1 }\n\n//\n\nfunc Size() int {\n\treturn 3\n}\n",
    ["use.go"] = "package x\n\nfunc use() int {\n\treturn Load() + Size()\n}\n",
  })
  t.write(w.home .. "/config/pillion/pillion.jsonc", [[{"review":"draft","permission":{"verify":"allow"}}]])
  vim.cmd("edit use.go")
  vim.cmd("Pillion shout")
  local review = t.review()
  eq(3, #review.hunks)
  local text = {}
  for _, l in ipairs(require("pillion.evidence").lines(review.evidence, w.project)) do
    text[#text + 1] = l[1]
  end
  text = table.concat(text, "\n")
  match("verified rename Load → Fetch, 2 places", text)
  match("public function Size changed inside: 1 use in 1 file, 1 of them in this proposal", text)
  match("the agent says “All tests pass.”, tests: no run of that is known", text)
  match("verified rename Load → Fetch, 2 places %(2 hunks, one decision%)", review:effect(review.hunks[1]))
  vim.cmd("Pillion accept")
  eq({ 1, { "accept", "accept" } }, { review:left(), vim.tbl_map(function(h)
    return h.decision
  end, vim.tbl_filter(function(h)
    return h.decision
  end, review.hunks)) })
  vim.cmd("Pillion reject all")
  wait("the decision to be applied", function()
    vim.cmd("silent! wall")
    return t.read(w.project .. "/lib.go"):find("func Fetch", 1, true)
  end, 10000)
  t.idle()
  match("func Fetch", t.read(w.project .. "/lib.go"))
  match("return 3", t.read(w.project .. "/lib.go"))
end)

test("hunks that only make sense together say so", function()
  propose({
    { tool = "read", input = { filePath = "main.go" } },
    { tool = "multiedit", input = { filePath = "main.go", edits = { { oldString = "func old()", newString = "func new()" }, { oldString = "\told()", newString = "\tnew()" } } } },
    "Done.",
  }, { ["go.mod"] = "module x\n\ngo 1.21\n", ["main.go"] = "package main\n\nfunc old() {}\n\n//\n//\n//\n//\n\nfunc main() {\n\told()\n}\n", ["a.txt"] = "" })
  local review = t.review()
  wait("the dependency of the hunks", function()
    return review.hunks[2].needs ~= nil
  end)
  match("needs hunk 2 · if rejected: introduces 1", review:effect(review.hunks[1]))
  match("needs hunk 1 · if rejected: introduces 1", review:effect(review.hunks[2]))
  vim.cmd("Pillion review")
  local drawn = all_marks(review.hunks[1].file.buf)
  match("1/2  needs hunk 2", vim.inspect(drawn))
  keys("gr")
  wait("the verdict without the first hunk", function()
    return not review.checking
  end)
  match("introduces 1", review:headline())
  match("needs hunk 1", review:effect(review.hunks[2])) -- still known
  vim.cmd("Pillion reject all")
  t.idle()
end)

test("a review's findings are a quickfix list, and each can be fixed", function()
  t.world({ "- a.txt:2-3: error: wrong\n- b.txt:1: made up", { tool = "read", input = { filePath = "a.txt" } }, { tool = "edit", input = { filePath = "a.txt", oldString = "two", newString = "TWO" } }, "Done." }, { ["a.txt"] = ten })
  vim.cmd("edit a.txt")
  vim.cmd("Pillion /review a.txt")
  t.idle()
  wait("the findings", function()
    return #vim.fn.getqflist() == 1
  end)
  local item = vim.fn.getqflist()[1]
  eq({ 2, 3, "E", "model: wrong" }, { item.lnum, item.end_lnum, item.type, item.text })
  match("Pillion review: 1 finding", vim.fn.getqflist({ title = 0 }).title)
  vim.cmd("Pillion finding")
  local review = t.review()
  vim.cmd("Pillion accept all")
  wait("the decision", function()
    return review.closed
  end)
  t.idle()
  eq("TWO", vim.fn.getline(2))
  match("a.txt:2%-3", t.chat_text())
end)

test("several files: jumping, the quickfix list, a new file, a deleted one", function()
  local w = t.world({ "Hello." }, { ["a.txt"] = ten, ["c.txt"] = "gone\n" })
  vim.cmd("edit a.txt")
  vim.cmd("Pillion hello")
  t.idle()
  local patched
  t.session():call("_pillion/tool/call", {
    tool = "apply_patch",
    input = { patchText = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n*** Add File: new/b.lua\n+local x = 1\n+return x\n*** Delete File: c.txt\n*** End Patch" },
  }, function(err, r)
    patched = err and err.message or r.output
  end)
  local review = t.review()
  eq(3, #review.files)
  eq(3, #vim.fn.getqflist())
  match("3 files, 3 hunks", vim.fn.getqflist({ title = 0 }).title)
  vim.cmd("Pillion review")
  local names = {}
  for _ = 1, 3 do
    names[#names + 1] = vim.fn.fnamemodify(vim.b.pillion_preview or vim.api.nvim_buf_get_name(0), ":t")
    vim.cmd("Pillion review next")
  end
  table.sort(names)
  eq({ "a.txt", "b.lua", "c.txt" }, names)
  -- The new file is changed in its preview, then accepted.
  for _ = 1, 3 do
    if vim.b.pillion_preview then
      break
    end
    vim.cmd("Pillion review next")
  end
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { "local x = 2" })
  vim.cmd("Pillion accept file")
  vim.cmd("Pillion accept all")
  wait("the patch", function()
    return patched
  end)
  eq("local x = 2\nreturn x\n", t.read(w.project .. "/new/b.lua"))
  eq(nil, t.read(w.project .. "/c.txt"))
  eq("TWO", t.lines(vim.fn.bufnr("a.txt"))[2])
end)

local shout = { { tool = "read", input = { filePath = "a.txt" } }, { tool = "edit", input = { filePath = "a.txt", oldString = "one", newString = "ONE" } } }

test("a window with unsaved text keeps it where 'hidden' is off; :w in a new file's preview takes it as it is there", function()
  local w = t.world({ shout[1], shout[2], { tool = "write", input = { filePath = "new.txt", content = "n\n" } }, "Done." }, { ["a.txt"] = "one\n", ["b.txt"] = "b\n" })
  vim.o.hidden = false
  vim.cmd("edit b.txt")
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "unsaved" })
  local mine = vim.api.nvim_get_current_buf()
  vim.cmd("Pillion go")
  t.review()
  vim.cmd("Pillion review")
  match("a.txt$", vim.fn.bufname())
  eq(1, #vim.fn.win_findbuf(mine))
  vim.cmd("Pillion accept all")
  wait("the new file", function()
    local r = require("pillion.review").open[1]
    return r and r.files[1].kind == "create"
  end)
  vim.cmd("Pillion review")
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { "new", "mine" })
  vim.cmd("write")
  t.idle()
  eq("new\nmine\n", t.read(w.project .. "/new.txt"))
  eq({ "unsaved", "b" }, t.lines(mine))
  vim.o.hidden = true
end)

test("a session file brings no empty window of ours back", function()
  local w = t.world({ "Hello." }, { ["a.txt"] = "one\n" })
  vim.cmd("edit a.txt")
  vim.cmd("Pillion hello")
  t.idle()
  vim.cmd("silent mksession " .. w.project .. "/Session.vim")
  match("pillion://", t.read(w.project .. "/Session.vim"))
  vim.fn.system({ vim.v.progpath, "--headless", "-u", "NONE", "-i", "NONE", "-n", "--cmd", "source " .. t.root .. "/plugin/pillion.lua", "-S", w.project .. "/Session.vim", "-c", "call writefile(map(getwininfo(), 'bufname(v:val.bufnr)') + filter(map(range(1, bufnr('$')), 'bufname(v:val)'), 'v:val =~ \"pillion:\"'), '" .. w.project .. "/windows')", "-c", "qall!" })
  eq("a.txt\n", t.read(w.project .. "/windows"))
end)

test("a terminal with hardly any room: the chat opens without its input, and says so", function()
  local w = t.world({ shout[1], shout[2], "Done." }, { ["a.txt"] = "one\n" })
  vim.o.columns, vim.o.lines = 14, 4
  vim.cmd("edit a.txt")
  vim.cmd("Pillion go")
  t.review()
  vim.cmd("Pillion chat")
  vim.cmd("Pillion review")
  vim.cmd("Pillion accept all")
  t.idle()
  eq({ "ONE" }, t.lines(vim.fn.bufnr("a.txt")))
  match("too small", w.told[1].text)
end)

test("side by side: what is left in the proposal is the answer", function()
  local w = propose()
  vim.cmd("Pillion review split")
  eq(true, vim.wo.diff)
  t.ok(vim.b.pillion_proposal, "not in the proposal")
  local lines = t.lines()
  eq({ "TWO", "and more", "NINE" }, { lines[2], lines[3], lines[9] })
  vim.api.nvim_buf_set_lines(0, 1, 3, false, { "two" }) -- as it was: rejected
  for i, l in ipairs(t.lines()) do
    if l == "NINE" then
      vim.api.nvim_buf_set_lines(0, i - 1, i, false, { "nine and a bit" })
    end
  end
  vim.cmd("write")
  t.idle()
  eq("one\ntwo\nthree\nfour\nsix\nseven\neight\nnine and a bit\nten", table.concat(t.lines(vim.fn.bufnr("a.txt")), "\n"))
  eq(false, vim.wo.diff)
  t.ok(w)
end)

test("the layout split shows a proposal side by side by itself, and leaves the focus", function()
  local _, review = propose(nil, nil, { review = { layout = "split", open = "always" } })
  local here = vim.api.nvim_get_current_win()
  local proposal
  wait("the proposal beside the file", function()
    for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
      if vim.b[vim.api.nvim_win_get_buf(win)].pillion_proposal then
        proposal = win
      end
    end
    return proposal
  end)
  eq(here, vim.api.nvim_get_current_win())
  eq(true, vim.wo[here].diff)
  eq(true, vim.wo[proposal].diff)
  eq("TWO", t.lines(vim.api.nvim_win_get_buf(proposal))[2])
  vim.cmd("Pillion accept all")
  t.idle()
  eq("TWO", t.lines(vim.fn.bufnr("a.txt"))[2])
  eq(false, vim.wo.diff)
  t.ok(review.closed, "the review is over")
end)

test("side by side: u brings nothing back that was not typed, so :w after it decides as shown", function()
  propose()
  vim.cmd("Pillion review split")
  local before = t.lines()
  vim.cmd("silent! undo")
  eq(before, t.lines())
  vim.cmd("silent! normal! U")
  eq(before, t.lines())
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "typed" })
  vim.cmd("silent undo")
  eq(before, t.lines())
  vim.cmd("write")
  t.idle()
  eq("one\nTWO\nand more\nthree\nfour\nsix\nseven\neight\nNINE\nten", table.concat(t.lines(vim.fn.bufnr("a.txt")), "\n"))
end)

test("an edited hunk and a new file: u does not empty them", function()
  propose()
  vim.cmd("Pillion review")
  keys("ge")
  eq({ "TWO", "and more" }, t.lines())
  vim.cmd("silent! undo")
  eq({ "TWO", "and more" }, t.lines())
  vim.cmd("quit!")
  vim.cmd("Pillion reject all")
  t.idle()
  t.reset()
  t.world({ { tool = "write", input = { filePath = "new.txt", content = "n\nm\n" } }, "Done." }, { ["a.txt"] = "one\n" })
  vim.cmd("edit a.txt")
  vim.cmd("Pillion go")
  t.review()
  vim.cmd("Pillion review")
  eq({ "n", "m" }, t.lines())
  vim.cmd("silent! undo")
  eq({ "n", "m" }, t.lines())
end)

test("side by side: the keys decide hunk by hunk where the cursor is, and decisions are shown", function()
  local w, review = propose()
  vim.cmd("Pillion review split")
  local pane = vim.api.nvim_get_current_buf()
  eq(2, vim.api.nvim_win_get_cursor(0)[1])
  keys("]h")
  eq("accept", (keys("ga") or review.hunks[2].decision))
  eq(pane, vim.api.nvim_get_current_buf(), "the pane stays in front")
  vim.fn.cursor(2, 1)
  keys("gr")
  eq("reject", review.hunks[1].decision)
  eq({ "one", "two", "three" }, { t.lines()[1], t.lines()[2], t.lines()[3] })
  match("1 ✓ 1 ✗ 1 open", review:headline())
  local words = {}
  for _, m in ipairs(all_marks(pane)) do
    for _, c in ipairs(m[4].virt_text or {}) do
      words[#words + 1] = vim.trim(c[1])
    end
  end
  eq({ "rejected", "accepted", "undecided" }, words)
  for i, l in ipairs(t.lines()) do
    if l == "NINE" then
      vim.api.nvim_buf_set_lines(0, i - 1, i, false, { "Nine, mine" })
      vim.fn.cursor(i, 1)
    end
  end
  keys("ga")
  t.idle()
  eq("one\ntwo\nthree\nfour\nsix\nseven\neight\nNine, mine\nten", table.concat(t.lines(vim.fn.bufnr("a.txt")), "\n"))
  eq(false, vim.wo.diff)
  t.ok(w)
end)

test("side by side: gz opens a hunk again with its proposed text", function()
  local _, review = propose()
  vim.cmd("Pillion review split")
  keys("gr")
  eq("two", t.lines()[2])
  keys("gz")
  eq({ "TWO", "and more" }, { t.lines()[2], t.lines()[3] })
  eq(3, review:left())
  vim.cmd("write")
  t.idle()
  eq("TWO", t.lines(vim.fn.bufnr("a.txt"))[2])
end)

test("a decided hunk stays visible in the file until all are decided", function()
  local _, review = propose()
  vim.cmd("Pillion review")
  keys("ga")
  keys("gr")
  local buf = vim.fn.bufnr("a.txt")
  if vim.fn.has("nvim-0.8") == 1 then -- 0.7 does not tell the groups of marks
    eq({ 1, 3 }, { marks(buf) })
  end
  match("1 ✓ 1 ✗ 1 open", review:headline())
  local seen = vim.inspect(all_marks(buf))
  match("accepted", seen)
  match("rejected", seen)
  if vim.fn.has("nvim-0.8") == 1 then
    match("PillionGone", seen)
  end
  match("PillionTaken", seen)
  keys("ga")
  t.idle()
  eq({ 0, 0 }, { marks(buf) })
end)

test("keys typed before the proposal could be read decide nothing", function()
  local w, review = propose()
  local map = require("pillion.review_keys")
  local clock = map.now
  map.grace = 300
  map.now = function()
    return review.shown_at + 299
  end
  vim.cmd("Pillion review")
  keys("ga")
  keys("gA")
  eq(3, review:left())
  map.now = function()
    return review.shown_at + 300
  end
  keys("ga")
  eq(2, review:left())
  map.now = clock
  vim.cmd("Pillion reject all")
  t.idle()
  t.ok(w)
end)

test("a comment goes to the model; reset opens hunks again", function()
  local w, review = propose()
  vim.cmd("Pillion review")
  vim.ui.input = function(_, done)
    done("not like this")
  end
  keys("gc")
  eq("not like this", review.hunks[1].comment)
  keys("gr")
  eq("reject", review.hunks[1].decision)
  keys("gz")
  eq(3, review:left())
  vim.cmd("Pillion review")
  keys("gr")
  vim.cmd("Pillion accept all")
  t.idle()
  local seen = t.seen(w)
  match("not like this", vim.json.encode(seen[3].messages[#seen[3].messages]))
end)

test("the review's keys are gone afterwards, and those of before are back", function()
  local _, review = propose(nil, nil)
  t.ok(vim.fn.maparg("ga", "n") ~= "")
  vim.cmd("Pillion reject all")
  t.idle()
  eq("", vim.fn.maparg("ga", "n"))
  eq(true, review.closed)
end)

test("follow: edits are written as they come; keep and undo afterwards", function()
  t.world(three(), { ["a.txt"] = ten }, { follow = true })
  vim.cmd("edit a.txt")
  vim.cmd("Pillion follow on")
  vim.cmd("Pillion shout")
  wait("the signs", function()
    local f = package.loaded["pillion.follow"]
    local s = t.session()
    return f and s and s.id and f.touched[s.id] and #f.touched[s.id] > 0
  end)
  eq("TWO", t.lines()[2])
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
  vim.cmd("Pillion reject")
  wait("the undo", function()
    return t.lines()[2] == "two"
  end)
  local f, s = require("pillion.follow"), t.session()
  wait("the signs", function()
    local n = 0
    for _, h in ipairs(f.touched[s.id][1] and f.touched[s.id][1].hunks or {}) do
      n = n + (h.state == "open" and 1 or 0)
    end
    return n == 2
  end)
  vim.cmd("Pillion keep all")
  wait("the note", function()
    return t.chat_text():find("Kept 2 hunks", 1, true)
  end)
end)

test("a draft is one review over all files, whatever changed them; a command's changes too", function()
  local w = t.world({
    { tool = "bash", input = { command = "sed -i s/two/TWO/ a.txt; printf 'made\\n' > made.txt; rm gone.txt" } },
    { tool = "read", input = { filePath = "b.txt" } },
    { tool = "edit", input = { filePath = "b.txt", oldString = "nine", newString = "NINE" } },
    "Done.",
    "Understood.",
  }, { ["a.txt"] = ten, ["b.txt"] = ten, ["gone.txt"] = "gone\n" })
  vim.cmd("edit a.txt")
  -- Typed and not saved: the draft begins from it, and it is not lost.
  vim.api.nvim_buf_set_lines(0, 9, 10, false, { "ten and more" })
  vim.cmd("Pillion draft on")
  vim.cmd("Pillion shout")
  local review = t.review()
  local names = {}
  for _, f in ipairs(review.files) do
    names[#names + 1] = vim.fn.fnamemodify(f.path, ":t")
  end
  table.sort(names)
  eq({ "a.txt", "b.txt", "gone.txt", "made.txt" }, names)
  eq(4, #vim.fn.getqflist())
  -- Nothing is written before the decision.
  eq(ten, t.read(w.project .. "/a.txt"))
  eq("gone\n", t.read(w.project .. "/gone.txt"))
  eq(nil, t.read(w.project .. "/made.txt"))
  vim.cmd("Pillion accept all")
  t.idle()
  local a = t.lines(vim.fn.bufnr("a.txt"))
  eq({ "TWO", "ten and more" }, { a[2], a[10] })
  eq("made\n", t.read(w.project .. "/made.txt"))
  eq(nil, t.read(w.project .. "/gone.txt"))
  match("NINE", t.read(w.project .. "/b.txt"))
end)

test("a rejected draft leaves everything as it was", function()
  local w = t.world({ { tool = "bash", input = { command = "echo x >> a.txt; rm -f b.txt" } }, "Done.", "Understood." }, { ["a.txt"] = ten, ["b.txt"] = "b\n" })
  vim.cmd("edit a.txt")
  vim.cmd("Pillion draft on")
  vim.cmd("Pillion shout")
  eq(2, #t.review().files)
  vim.cmd("Pillion reject all")
  t.idle()
  eq(ten, t.read(w.project .. "/a.txt"))
  eq("b\n", t.read(w.project .. "/b.txt"))
  vim.cmd("Pillion draft off")
  wait("the option", function()
    return t.session():option("review").currentValue == "preview"
  end)
end)

test("stopping the turn takes the proposal away", function()
  local w, review = propose()
  vim.cmd("Pillion stop")
  wait("the end", function()
    return review.closed
  end)
  t.idle()
  eq({ 0, 0 }, { marks(0) })
  eq(ten, t.read(w.project .. "/a.txt"))
  match("Not decided", t.chat_text())
end)

test("other windows and tabs keep their cursor", function()
  propose()
  vim.cmd("tabnew a.txt")
  vim.api.nvim_win_set_cursor(0, { 7, 2 })
  local win = vim.api.nvim_get_current_win()
  vim.cmd("tabprevious")
  vim.cmd("Pillion accept all")
  t.idle()
  local cursor = vim.api.nvim_win_get_cursor(win)
  eq("seven", t.lines(vim.api.nvim_win_get_buf(win))[cursor[1]])
  eq(2, cursor[2])
end)

test("a question of the agent waits in the chat and is answered from a list", function()
  local w = t.world({
    { tool = "question", input = { questions = { { question = "Which colour?", header = "Colour", options = { { label = "Red", description = "warm" }, { label = "Blue", description = "cold" } } } } } },
    "Blue it is.",
  }, {})
  vim.cmd("Pillion ask me")
  local ask = t.ask()
  eq("form", ask.kind)
  match("Which colour%?", t.chat_text())
  t.select("Blue")
  vim.cmd("Pillion answer")
  t.idle()
  match("Blue", vim.json.encode(t.seen(w)[2].messages))
end)

test("a permission is asked in the chat and answered by a number there", function()
  local w = t.world({ { tool = "read", input = { filePath = "/etc/hostname" } }, "Done." }, {})
  vim.cmd("Pillion read it")
  local ask = t.ask()
  eq("permission", ask.kind)
  local win = require("pillion.chat").window()
  vim.api.nvim_set_current_win(win)
  t.chat_text()
  vim.fn.search("(1)")
  local reject
  for i, o in ipairs(ask.options) do
    if o.kind == "reject_once" then
      reject = i
    end
  end
  local always
  for i, o in ipairs(ask.options) do
    always = always or o.kind == "allow_always" and i
  end
  keys(tostring(always))
  vim.wait(50)
  eq("open", ask.state, "what stays allowed wants its key twice")
  keys(tostring(reject))
  wait("the answer", function()
    return ask.state == "answered"
  end)
  t.idle()
  match("Reject", t.chat_text())
  t.ok(w)
end)

t.run()
