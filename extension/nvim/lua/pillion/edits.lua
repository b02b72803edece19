-- Applies an accepted change to buffers. It checks the version first; the change is one undo step and stays unsaved.
local buffers = require("pillion.buffers")
local compat = require("pillion.compat")
local log = require("pillion.log")
local paths = require("pillion.paths")
local text = require("pillion.text")

local M = {}

-- The hash of a larger buffer is not sent; in bytes.
local max_hashed = 2 * 1024 * 1024

-- Starts a new undo step, so that typed text and the change are undone separately.
local function undo_break(buf)
  vim.api.nvim_buf_call(buf, function()
    vim.cmd("let &l:undolevels = &l:undolevels")
  end)
end

-- Replaces only the lines that differ between the buffer and `lines`.
---@param buf integer
---@param lines string[]
function M.set_lines(buf, lines)
  local old = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  local first = 1
  while first <= #old and first <= #lines and old[first] == lines[first] do
    first = first + 1
  end
  local a, b = #old, #lines
  while a >= first and b >= first and old[a] == lines[b] do
    a, b = a - 1, b - 1
  end
  if a >= first or b >= first then
    vim.api.nvim_buf_set_lines(buf, first - 1, a, false, { unpack(lines, first, b) })
  end
end

local function set_eol(buf, eol)
  if eol == text.has_eol(buf) then
    return
  end
  vim.bo[buf].eol = eol
  vim.b[buf].pillion_eol = nil
  if not eol then
    vim.bo[buf].fixeol = false -- otherwise saving would add the final newline that the change removed
  end
end

-- Applies edits to the whole text, for buffers in which LSP's lines are not Neovim's lines.
local function apply_by_text(buf, snap, edits)
  local s = text.join(snap)
  for _, e in ipairs(edits) do
    local from, to = text.offset(s, e.range.start), text.offset(s, e.range["end"])
    s = s:sub(1, from) .. e.newText .. s:sub(to + 1)
  end
  if snap.bytes then
    local raw = text.narrow(s)
    if not raw then
      error("the new text has characters that this file's bytes cannot hold; set 'fileencoding' first", 0)
    end
    s = raw
  end
  local lines, eol = text.split(s, snap.sep)
  M.set_lines(buf, lines)
  set_eol(buf, eol)
end

-- Applies edits line by line: the usual case.
local function apply_by_lines(buf, sep, edits)
  local count = vim.api.nvim_buf_line_count(buf)
  for _, e in ipairs(edits) do
    local s, f = e.range.start, e.range["end"]
    local lines = text.split(e.newText, sep)
    local closed = e.newText == "" or e.newText:sub(-1) == "\n"
    if s.character == 0 and f.character == 0 and closed then
      vim.api.nvim_buf_set_lines(buf, math.min(s.line, count), math.min(f.line, count), false, e.newText == "" and {} or lines)
    else
      if e.newText:sub(-1) == "\n" then
        lines[#lines + 1] = ""
      end
      local function place(p)
        local row = math.min(p.line, count - 1)
        local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
        return row, p.line >= count and #line or text.column(line, p.character)
      end
      local r1, c1 = place(s)
      local r2, c2 = place(f)
      vim.api.nvim_buf_set_text(buf, r1, c1, r2, c2, lines)
    end
  end
end

-- Applies edits to one buffer; throws if it cannot.
---@param buf integer
---@param edits table[]
function M.apply(buf, edits)
  edits = vim.deepcopy(edits)
  for i, e in ipairs(edits) do
    e.at = i
  end
  table.sort(edits, function(a, b)
    local x, y = a.range.start, b.range.start
    if x.line ~= y.line then
      return x.line > y.line
    end
    if x.character ~= y.character then
      return x.character > y.character
    end
    return a.at > b.at
  end)
  local snap = text.snapshot(buf)
  local views = {}
  for _, w in ipairs(vim.fn.win_findbuf(buf)) do
    views[w] = vim.api.nvim_win_get_cursor(w)
  end
  local anchor = vim.api.nvim_create_namespace("pillion_cursor")
  local marks = {}
  for w, c in pairs(views) do
    marks[w] = vim.api.nvim_buf_set_extmark(buf, anchor, c[1] - 1, 0, {})
  end
  undo_break(buf)
  if snap.eol and not snap.odd and not snap.bytes then
    apply_by_lines(buf, snap.sep, edits)
  else
    apply_by_text(buf, snap, edits)
  end
  undo_break(buf)
  for w, c in pairs(views) do
    local row = vim.api.nvim_buf_get_extmark_by_id(buf, anchor, marks[w], {})[1]
    if row and vim.api.nvim_win_is_valid(w) then
      local line = math.min(row + 1, vim.api.nvim_buf_line_count(buf))
      pcall(vim.api.nvim_win_set_cursor, w, { line, c[2] })
    end
  end
  vim.api.nvim_buf_clear_namespace(buf, anchor, 0, -1)
end

-- Says why an edit of a buffer is not possible; nil if it is.
local function objection(change)
  local path = paths.from_uri(change.textDocument.uri)
  local buf = paths.buffer(path)
  if not buf then
    if change.textDocument.version then
      return path .. " is not open any more"
    end
    buf = paths.load(path)
  end
  if not vim.api.nvim_buf_is_loaded(buf) then
    if change.textDocument.version then
      return path .. " is not loaded any more"
    end
    buf = paths.load(path)
  end
  if not vim.bo[buf].modifiable then
    return path .. " cannot be changed ('nomodifiable'); :set modifiable in its buffer allows it"
  end
  local version, doc = change.textDocument.version, buffers.docs[buf]
  local now = doc and doc.version or vim.api.nvim_buf_get_changedtick(buf)
  if version and (now ~= version or (doc and (doc.whole or doc.opening or #doc.changes > 0))) then
    return ("%s was changed: version %d is now %d"):format(path, version, now)
  end
  return nil, buf
end

local function rename(change)
  local from, to = paths.from_uri(change.oldUri), paths.from_uri(change.newUri)
  if paths.exists(to) then
    error(to .. " exists already", 0)
  end
  vim.fn.mkdir(vim.fn.fnamemodify(to, ":h"), "p")
  local ok, err = compat.uv.fs_rename(from, to)
  if not ok then
    error(("%s could not be renamed: %s"):format(from, err), 0)
  end
  local buf = paths.buffer(from)
  if not buf then
    return
  end
  local lines = compat.loaded(buf) and vim.bo[buf].modified and vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  vim.api.nvim_buf_set_name(buf, to)
  if compat.loaded(buf) then
    vim.api.nvim_buf_call(buf, function()
      -- Vim accepts the file as this buffer's own only after reading it again; otherwise `:w` needs a `!`.
      vim.cmd("silent! keepjumps keepalt edit!")
    end)
    if lines then
      M.set_lines(buf, lines)
      undo_break(buf)
    end
  end
end

local function delete(change)
  local path = paths.from_uri(change.uri)
  local ok, err = os.remove(path)
  if not ok then
    error(("%s could not be deleted: %s"):format(path, err), 0)
  end
  local buf = paths.buffer(path)
  if not buf then
    return
  end
  for _, w in ipairs(vim.fn.win_findbuf(buf)) do
    vim.api.nvim_win_call(w, function()
      local alt = vim.fn.bufnr("#")
      if alt > 0 and alt ~= buf and vim.fn.buflisted(alt) == 1 then
        vim.cmd("buffer " .. alt)
      else
        vim.cmd("enew")
      end
    end)
  end
  pcall(vim.api.nvim_buf_delete, buf, { force = true })
end

-- Applies a workspace edit as a whole, or changes nothing.
---@param p pillion.ApplyEditRequest
---@return pillion.ApplyEditResponse
function M.workspace(p)
  buffers.flush()
  local todo = {}
  for _, change in ipairs(p.edit.documentChanges) do
    if not change.kind then
      local why, buf = objection(change)
      if why then
        return { applied = false, failureReason = why }
      end
      todo[#todo + 1] = { buf = buf, change = change }
    end
  end
  local done, versions, hashes = {}, {}, {}
  local ok, err = pcall(function()
    for _, x in ipairs(todo) do
      M.apply(x.buf, x.change.edits)
      table.insert(done, 1, x)
    end
    for _, change in ipairs(p.edit.documentChanges) do
      if change.kind == "create" then
        local path = paths.from_uri(change.uri)
        vim.fn.mkdir(vim.fn.fnamemodify(path, ":h"), "p")
        assert(vim.fn.writefile({}, path, "b") == 0, path .. " could not be created")
      elseif change.kind == "rename" then
        rename(change)
      elseif change.kind == "delete" then
        delete(change)
      end
    end
  end)
  if not ok then
    for _, x in ipairs(done) do
      pcall(vim.api.nvim_buf_call, x.buf, function()
        vim.cmd("silent undo")
      end)
    end
    log.add("warn", "applyEdit: " .. tostring(err))
    return { applied = false, failureReason = tostring(err):gsub("^.-:%d+: ", "") }
  end
  for _, x in ipairs(todo) do
    if compat.loaded(x.buf) then
      local uri, doc = x.change.textDocument.uri, buffers.docs[x.buf]
      versions[uri] = doc and doc.version or vim.api.nvim_buf_get_changedtick(x.buf)
      if vim.api.nvim_buf_get_offset(x.buf, vim.api.nvim_buf_line_count(x.buf)) <= max_hashed then
        local s = text.of(x.buf)
        if not s:find("\0", 1, true) then
          hashes[uri] = vim.fn.sha256(s)
        end
      end
      if vim.bo[x.buf].readonly then
        log.tell("warn", paths.short(paths.from_uri(uri)) .. " is read-only; saving it needs :w!")
      end
    end
  end
  compat.user_event("PillionApplied", { session = p.sessionId, changeSet = p.changeSet, label = p.label })
  return {
    applied = true,
    versions = next(versions) and versions or compat.object(),
    sha256 = next(hashes) and hashes or compat.object(),
  }
end

return M
