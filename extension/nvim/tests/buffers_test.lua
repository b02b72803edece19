-- Live buffers: what the sidecar believes is open is what is open, byte by byte.
local t = dofile(vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h") .. "/helper.lua")
local test, eq, match, wait = t.test, t.eq, t.match, t.wait

-- A sidecar of our own making: it keeps the documents as it is told, by the protocol's rules, in Lua.
local function mirror()
  local process = require("pillion.process")
  local text = require("pillion.text")
  local docs, log = {}, {}
  local fake = { exited = nil, bad = 0 }
  function fake.notify(_, method, p)
    local d = p.textDocument
    log[#log + 1] = method:match("[^/]+$")
    if method:match("didOpen") then
      docs[d.uri] = { text = d.text, version = d.version, dirty = d.dirty }
    elseif method:match("didChange$") then
      local doc = docs[d.uri]
      t.ok(d.version >= doc.version, "an older version")
      for _, c in ipairs(p.contentChanges) do
        if c.range then
          local a, b = text.offset(doc.text, c.range.start), text.offset(doc.text, c.range["end"])
          doc.text = doc.text:sub(1, a) .. c.text .. doc.text:sub(b + 1)
        else
          doc.text = c.text
        end
      end
      doc.version, doc.dirty = d.version, p.dirty
    elseif method:match("didSave") then
      docs[d.uri].dirty = false
    elseif method:match("didClose") then
      docs[d.uri] = nil
    end
  end
  function fake.stream(self, head, texts, tail, change)
    local whole = table.concat(texts)
    local msg = vim.json.decode(head .. vim.json.encode(change and change(whole) or whole) .. tail)
    self:notify(msg.method, msg.params)
  end
  process.state = "ready"
  require("pillion.buffers").enable(fake)
  return docs, log
end

local function uri(buf)
  return vim.uri_from_fname(vim.api.nvim_buf_get_name(buf or 0))
end

local function disk_text(buf)
  -- What :w would write, as characters.
  local path = vim.fn.tempname()
  vim.api.nvim_buf_call(buf or 0, function()
    local fixeol = vim.bo.fixeol
    vim.bo.fixeol = false
    vim.cmd("silent noautocmd keepalt write! ++enc=utf-8 " .. path)
    vim.bo.fixeol = fixeol
  end)
  local s = t.read(path)
  vim.fn.delete(path)
  return (s:gsub("^\239\187\191", ""))
end

test("a thousand random edits, undone and redone, arrive exactly", function()
  t.world(nil, { ["a.txt"] = "eins\nzwei\n😀 drei\nvier\n" }, { cmd = { "true" } })
  local docs = mirror()
  vim.cmd("edit a.txt")
  math.randomseed(7)
  local words = { "", "x", "ü", "😀", "two\nlines", "\n", "a\n\nb\n", "tab\there" }
  for i = 1, 1000 do
    local n = vim.api.nvim_buf_line_count(0)
    local r = math.random(8)
    if r == 1 and i > 20 then
      vim.cmd("silent! undo")
    elseif r == 2 then
      vim.cmd("silent! redo")
    elseif r <= 4 then
      local a = math.random(0, n)
      local b = math.random(a, math.min(n, a + 3))
      vim.api.nvim_buf_set_lines(0, a, b, false, vim.split(words[math.random(#words)], "\n"))
    else
      local row = math.random(0, n - 1)
      local line = vim.api.nvim_buf_get_lines(0, row, row + 1, false)[1]
      local col = vim.fn.byteidx(line, math.random(0, vim.fn.strchars(line)))
      vim.api.nvim_buf_set_text(0, row, col, row, col, vim.split(words[math.random(#words)], "\n"))
    end
    if i % 7 == 0 then
      require("pillion.buffers").flush()
      eq(disk_text(), docs[uri()].text, "after " .. i .. " edits")
    end
  end
end)

test("dos, mac, no last newline, NUL, lone CR and no UTF-8", function()
  local files = {
    dos = "a\r\nb\r\n",
    noeol = "a\nb",
    nul = "a\0b\nc\n",
    cr = "a\rb\nc\n",
    mac = "a\rb\r",
    empty = "",
  }
  t.world(nil, files, { cmd = { "true" } })
  local docs = mirror()
  vim.o.hidden = true
  vim.o.fileformats = "unix,dos,mac"
  for name, text in pairs(files) do
    vim.cmd("edit " .. name)
    eq(text, docs[uri()].text, name)
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { "first" })
    vim.api.nvim_buf_set_lines(0, -1, -1, false, { "last" })
    require("pillion.buffers").flush()
    eq(disk_text(), docs[uri()].text, name .. " after typing")
  end
end)

test("opened, changed, saved, renamed, closed; reloaded from the disk", function()
  local w = t.world(nil, { ["a.txt"] = "one\n", ["b.txt"] = "two" }, { cmd = { "true" } })
  local docs, log = mirror()
  vim.cmd("edit a.txt")
  local a = uri()
  eq(false, docs[a].dirty)
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { "ONE" })
  require("pillion.buffers").flush()
  eq(true, docs[a].dirty)
  vim.cmd("silent write")
  eq(false, docs[a].dirty)
  vim.cmd("silent undo")
  require("pillion.buffers").flush()
  eq(true, docs[a].dirty)
  vim.cmd("silent file c.txt")
  eq(nil, docs[a])
  t.ok(docs[uri()], "not open under its new name")
  vim.cmd("bwipeout!")
  eq(vim.empty_dict(), next(docs) and docs or vim.empty_dict())
  vim.cmd("edit b.txt")
  eq("two", docs[uri()].text)
  vim.bo.fixeol = true
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { "TWO" })
  vim.cmd("silent write")
  eq("TWO\n", t.read(w.project .. "/b.txt"))
  eq("TWO\n", docs[uri()].text, "the newline that 'fixeol' added")
  t.write(w.project .. "/b.txt", "other\ntext\n")
  vim.cmd("silent edit!")
  require("pillion.buffers").flush()
  eq("other\ntext\n", docs[uri()].text)
  eq(false, docs[uri()].dirty)
  t.ok(vim.tbl_contains(log, "didSave"))
end)

test("a new file is told when it has text, a help page and a terminal never", function()
  t.world(nil, {}, { cmd = { "true" } })
  local docs = mirror()
  vim.cmd("edit new.txt")
  eq(nil, docs[uri()])
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { "text" })
  vim.cmd("doautocmd BufModifiedSet")
  eq("text\n", docs[uri()] and docs[uri()].text)
  vim.cmd("help")
  vim.cmd("new")
  local n = 0
  for _ in pairs(docs) do
    n = n + 1
  end
  eq(1, n)
end)

test("10 MB go in pieces, and typing meanwhile is not lost", function()
  local line = ("0123456789abcdef äö\n"):rep(10)
  t.world(nil, { ["big.txt"] = line:rep(50000) }, { cmd = { "true" } })
  local docs = mirror()
  vim.cmd("edit big.txt")
  vim.api.nvim_buf_set_lines(0, 3, 4, false, { "typed while it is read" })
  wait("the document", function()
    return docs[uri()]
  end)
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "and after" })
  require("pillion.buffers").flush()
  wait("the change", function()
    return docs[uri()].text:find("and after", 1, true)
  end)
  eq(disk_text(), docs[uri()].text)
end)

test("larger than max_buffer is left to the disk", function()
  t.world(nil, { ["big.txt"] = ("x"):rep(5000) .. "\n" }, { cmd = { "true" }, max_buffer = 1000 })
  local docs = mirror()
  vim.cmd("edit big.txt")
  eq(nil, docs[uri()])
end)

test("positions: UTF-16 and bytes", function()
  local text = require("pillion.text")
  eq(0, text.utf16(""))
  eq(5, text.utf16("aü😀b"))
  eq(7, text.column("aü😀b", 4))
  eq(3, text.column("aü😀b", 3))
  eq(8, text.column("aü😀b", 99))
  eq(4, text.offset("a\rb\r\nc", { line = 2, character = 0 }) - 1)
  t.ok(text.valid("aü😀€\237\159\191"))
  for _, bad in ipairs({ "\255", "\192\128", "\237\160\128", "\244\144\128\128", "a\195", "\226\130" }) do
    t.ok(not text.valid(bad), "took " .. vim.inspect(bad))
  end
  eq("caf\233", text.narrow(text.widen("caf\233")))
  eq(nil, text.narrow("€"))
end)

-- A language that no server of Pillion's covers: here because the settings switch its server off.
test("a problem that only Neovim's server knows is shown before the edit is approved", function()
  local server = vim.env.PILLION_TEST_SERVERS or (t.repo .. "/.cache/servers/node_modules/.bin")
  local steps = { { tool = "read", input = { filePath = "a.py" } }, { tool = "edit", input = { filePath = "a.py", oldString = "n = 1", newString = "n: str = 1  # ü" } }, "Done." }
  local w = t.world(steps, { ["a.py"] = "import os\nn = 1\nprint(missing)\n", ["pyrightconfig.json"] = "{}\n" })
  t.write(w.home .. "/config/pillion/config.json", '{"lsp": {"python": {"disabled": true}, "pyright": {"disabled": true}}}')
  vim.cmd("edit a.py")
  vim.bo.filetype = "python"
  local buf = vim.api.nvim_get_current_buf()
  local start = vim.lsp.start_client
  local id = start({ name = "pyright", cmd = { server .. "/pyright-langserver", "--stdio" }, root_dir = w.project })
  vim.lsp.buf_attach_client(buf, id)
  local before = 2 -- the unused import and the unknown name; it may publish one before the other
  wait("pyright's own word", function()
    return #vim.diagnostic.get(buf) == before
  end)
  vim.cmd("Pillion go")
  local review = t.review()
  wait("the verdict", function()
    return review.diagnostics and review.diagnostics.certainty == "partial"
  end)
  eq(1, #review.diagnostics.introduced, vim.inspect(review.diagnostics))
  eq({ "Pyright (editor)", 2, 10 }, { review.diagnostics.introduced[1].source, review.diagnostics.introduced[1].line, review.diagnostics.introduced[1].column })
  eq({}, review.diagnostics.fixed)
  match("a.py: checked by the editor in a copy", review.diagnostics.reason)
  -- The person's buffer, its problems and the disk are as they were, and no copy is listed. Pyright may publish none for a moment, while it
  -- checks again what the copy had changed.
  wait("the problems of the person's buffer", function()
    return #vim.diagnostic.get(buf) == before
  end)
  eq({ "import os", "n = 1", "print(missing)" }, t.lines(buf))
  eq("import os\nn = 1\nprint(missing)\n", t.read(w.project .. "/a.py"))
  eq(1, #vim.fn.getbufinfo({ buflisted = 1 }))
  local all = require("pillion.diagnostics").text()
  t.ok(not all:find("pillion-", 1, true), all)
  eq(2, #vim.fn.readdir(w.project), "files in the project")
  wait("the copies' end", function()
    return #vim.tbl_filter(function(b)
      return vim.api.nvim_buf_get_name(b):find("pillion-", 1, true) ~= nil
    end, vim.api.nvim_list_bufs()) == 0
  end)
  vim.lsp.stop_client(id, true)
  wait("pyright's end", function()
    return vim.lsp.client_is_stopped(id) and #vim.diagnostic.get(buf) == 0
  end)
end)

test("diagnostics: Pillion's are shown, the editor's own are told", function()
  local w = t.world({ { tool = "read", input = { filePath = "a.go" } }, "Done." }, { ["a.go"] = "package a\n\nvar s = \"ü\" + missing\n" })
  vim.cmd("edit a.go")
  vim.cmd("Pillion look")
  t.idle()
  local d = require("pillion.diagnostics")
  d.updated({ uri = uri(), certainty = "fresh", diagnostics = { { range = { start = { line = 2, character = 14 }, ["end"] = { line = 2, character = 21 } }, severity = 1, message = "undefined: missing", source = "compiler" } } })
  local got = vim.diagnostic.get(0)[1]
  eq({ 2, 15, "undefined: missing" }, { got.lnum, got.col, got.message })
  d.updated({ uri = uri(), certainty = "pending", diagnostics = {} })
  eq(1, #vim.diagnostic.get(0), "pending is not none")
  d.updated({ uri = uri(), certainty = "fresh", diagnostics = {} })
  eq(0, #vim.diagnostic.get(0))
  local process = require("pillion.process")
  local sent
  local notify = process.rpc.notify
  process.rpc.notify = function(self, method, params)
    if method == "_pillion/diagnostics/didChange" then
      sent = params
    end
    return notify(self, method, params)
  end
  local ns = vim.api.nvim_create_namespace("test_linter")
  vim.diagnostic.set(ns, 0, { { lnum = 2, col = 15, end_lnum = 2, end_col = 22, severity = 2, message = "odd" } })
  if process.can("_pillion/diagnostics/didChange") then
    wait("the word", function()
      return sent
    end)
    eq({ 14, "odd" }, { sent.diagnostics[1].range.start.character, sent.diagnostics[1].message })
  end
  t.ok(w)
end)

t.run()
