-- Sends the open buffers to the sidecar when they change. The version of a document is the changedtick at the last
-- change of its text (saving changes the changedtick too).
local compat = require("pillion.compat")
local config = require("pillion.config")
local log = require("pillion.log")
local paths = require("pillion.paths")
local text = require("pillion.text")

local M = {}

---@class pillion.Document
---@field buf integer
---@field uri string
---@field version integer of the text that was sent
---@field changes table[] not sent yet
---@field whole boolean the whole text must be sent
---@field lines_only boolean positions and lines agree, so changes can be sent
---@field opening boolean its text is being sent

---@type table<integer, pillion.Document>
M.docs = {}
---@type pillion.Rpc?
local rpc
local timer
local group = "pillion_buffers"

-- A document with more bytes is sent in pieces.
local large = 512 * 1024
-- Lines read without a pause.
local stretch = 5000
local delay = 40 -- milliseconds to wait for more changes

---@param buf integer
---@return boolean
local function wanted(buf)
  if not compat.loaded(buf) or vim.bo[buf].buftype ~= "" then
    return false
  end
  local name = vim.api.nvim_buf_get_name(buf)
  if name == "" or name:match("^%a[%w+.-]+://") then
    return false
  end
  -- A buffer without text whose file does not exist is not a file yet.
  return vim.bo[buf].modified or paths.exists(name)
end

local function schedule_flush()
  if timer then
    return
  end
  timer = vim.defer_fn(function()
    timer = nil
    M.flush()
  end, delay)
end

local function item(doc, value)
  return { uri = doc.uri, languageId = value and (vim.bo[doc.buf].filetype ~= "" and vim.bo[doc.buf].filetype or "plaintext") or nil, version = doc.version }
end

-- Reads a buffer in parts, and starts again if the buffer changes during that. A part is processed as one text,
-- because line by line would take many times as long.
local function read(doc, done)
  local buf, tick, at = doc.buf, vim.api.nvim_buf_get_changedtick(doc.buf), 0
  local snap = { sep = text.separator(buf), eol = text.has_eol(buf), bytes = false, odd = false, texts = {} }
  local count = vim.api.nvim_buf_line_count(buf)
  local function step()
    if not compat.loaded(buf) or M.docs[buf] ~= doc then
      return
    end
    if vim.api.nvim_buf_get_changedtick(buf) ~= tick then
      return vim.defer_fn(function()
        if compat.loaded(buf) then
          read(doc, done)
        end
      end, 100)
    end
    local lines = vim.api.nvim_buf_get_lines(buf, at, at + stretch, false)
    at = at + #lines
    local s = table.concat(lines, "\0")
    if s:find("\n", 1, true) then -- Neovim stores NUL as \n
      s = table.concat(text.with_nul(lines), snap.sep)
      snap.odd = snap.odd or s:find("\r[^\n]") ~= nil
    else
      snap.odd = snap.odd or s:find("\r", 1, true) ~= nil
      s = s:gsub("%z", snap.sep)
    end
    snap.bytes = snap.bytes or not text.valid(s)
    if at < count or snap.eol then
      s = s .. snap.sep
    end
    table.insert(snap.texts, s)
    if at >= count then
      return done(snap, tick)
    end
    vim.defer_fn(step, 1)
  end
  step()
end

-- Sends the whole text of a document, as didOpen or as a change.
local function send_whole(doc, opening)
  local size = vim.api.nvim_buf_get_offset(doc.buf, vim.api.nvim_buf_line_count(doc.buf))
  if size > config.options.max_buffer then
    if M.docs[doc.buf] and not opening then
      rpc:notify("_pillion/buffer/didClose", { textDocument = { uri = doc.uri } })
    end
    M.docs[doc.buf] = nil
    return log.add("warn", ("%s is larger than max_buffer (%d bytes) and is not sent; the disk counts"):format(doc.uri, size))
  end
  doc.changes, doc.whole = {}, false
  if size <= large then
    local snap = text.snapshot(doc.buf)
    doc.lines_only = snap.eol and not snap.odd and not snap.bytes
    doc.version = vim.api.nvim_buf_get_changedtick(doc.buf)
    local body = text.join(snap)
    if opening then
      local document = item(doc, true)
      document.text, document.dirty = body, vim.bo[doc.buf].modified
      return rpc:notify("_pillion/buffer/didOpen", { textDocument = document })
    end
    return rpc:notify("_pillion/buffer/didChange", { textDocument = item(doc), contentChanges = { { text = body } }, dirty = vim.bo[doc.buf].modified })
  end
  doc.opening = true
  read(doc, function(snap, tick)
    doc.lines_only = snap.eol and not snap.odd and not snap.bytes
    doc.changes, doc.whole, doc.version = {}, false, tick
    local dirty = tostring(vim.bo[doc.buf].modified)
    local head, tail
    if opening then
      local d = vim.json.encode(item(doc, true)):sub(1, -2)
      head = '{"jsonrpc":"2.0","method":"_pillion/buffer/didOpen","params":{"textDocument":' .. d .. ',"dirty":' .. dirty .. ',"text":'
      tail = "}}}"
    else
      head = '{"jsonrpc":"2.0","method":"_pillion/buffer/didChange","params":{"textDocument":' .. vim.json.encode(item(doc)) .. ',"dirty":' .. dirty .. ',"contentChanges":[{"text":'
      tail = "}]}}"
    end
    rpc:stream(head, snap.texts, tail, snap.bytes and text.widen or nil)
    doc.opening = false
  end)
end

local function on_lines(_, buf, tick, first, last, now)
  local doc = M.docs[buf]
  if not doc or not rpc then
    return true -- detach
  end
  if doc.opening then
    return -- the reader notices the new changedtick and starts again, or the next flush below finds the change
  end
  doc.version = tick
  if doc.whole then
    return schedule_flush()
  end
  if not doc.lines_only then
    doc.whole = true
    return schedule_flush()
  end
  local lines = vim.api.nvim_buf_get_lines(buf, first, now, false)
  local s = table.concat(lines, "\0")
  if s:find("[\r\n]") or not text.valid(s) or vim.api.nvim_buf_line_count(buf) == 1 or #doc.changes > 500 then
    doc.whole = true
    return schedule_flush()
  end
  local sep = text.separator(buf)
  s = #lines > 0 and table.concat(lines, sep) .. sep or ""
  local changes = doc.changes
  local before = changes[#changes]
  if before and before.first == first and before.now == last then
    before.now, before.text = now, s -- the same lines as in the last change: the person is typing
  else
    changes[#changes + 1] = { first = first, last = last, now = now, text = s }
  end
  schedule_flush()
end

-- Sends all changes. It runs before any other message is sent, so that the sidecar has the text that the person sees.
function M.flush()
  if not rpc then
    return
  end
  for buf, doc in pairs(M.docs) do
    if not compat.loaded(buf) then
      M.close(buf)
    elseif doc.whole and not doc.opening then
      send_whole(doc, false)
    elseif #doc.changes > 0 and not doc.opening then
      local list = {}
      for _, c in ipairs(doc.changes) do
        list[#list + 1] = { range = { start = { line = c.first, character = 0 }, ["end"] = { line = c.last, character = 0 } }, text = c.text }
      end
      doc.changes = {}
      rpc:notify("_pillion/buffer/didChange", { textDocument = item(doc), contentChanges = list, dirty = vim.bo[buf].modified })
    end
  end
end

---@param buf integer
function M.open(buf)
  if not rpc or M.docs[buf] or not wanted(buf) then
    return
  end
  local doc = { buf = buf, uri = paths.to_uri(vim.api.nvim_buf_get_name(buf)), version = vim.api.nvim_buf_get_changedtick(buf), changes = {}, whole = false }
  M.docs[buf] = doc
  local ok = vim.api.nvim_buf_attach(buf, false, {
    on_lines = on_lines,
    on_changedtick = function() end,
    on_reload = function()
      if M.docs[buf] == doc then
        vim.b[buf].pillion_eol = nil
        doc.whole = true
        schedule_flush()
      end
    end,
    on_detach = function()
      vim.schedule(function()
        if M.docs[buf] == doc and not compat.loaded(buf) then
          M.close(buf)
        end
      end)
    end,
  })
  if not ok then
    M.docs[buf] = nil
    return
  end
  send_whole(doc, true)
end

---@param buf integer
function M.close(buf)
  local doc = M.docs[buf]
  M.docs[buf] = nil
  if doc and rpc then
    rpc:notify("_pillion/buffer/didClose", { textDocument = { uri = doc.uri } })
  end
end

local function saved(buf)
  local doc = M.docs[buf]
  if not doc then
    return M.open(buf)
  end
  if not vim.bo[buf].eol and vim.bo[buf].fixeol and not vim.bo[buf].binary and not vim.b[buf].pillion_eol then
    vim.b[buf].pillion_eol = true -- the file now ends with a newline, whatever 'eol' says
    doc.whole = true
  end
  M.flush()
  rpc:notify("_pillion/buffer/didSave", { textDocument = { uri = doc.uri, version = doc.version } })
end

-- Starts to send the open buffers; called once after each start of the sidecar.
---@param connection pillion.Rpc
function M.enable(connection)
  rpc, M.docs = connection, {}
  connection.before_send = M.flush
  vim.api.nvim_create_augroup(group, { clear = true })
  local function on(events, f)
    vim.api.nvim_create_autocmd(events, {
      group = group,
      callback = function(args)
        if rpc and not rpc.exited then
          f(args.buf)
        end
      end,
    })
  end
  on({ "BufReadPost", "BufNewFile", "BufModifiedSet", "FileType" }, M.open)
  on("BufWritePost", saved)
  on({ "BufFilePost" }, function(buf)
    if M.docs[buf] then
      M.close(buf)
    end
    M.open(buf)
  end)
  on({ "BufUnload", "BufWipeout" }, M.close)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    M.open(buf)
  end
end

-- Reads buffers again whose files changed on the disk. It never changes unsaved text and never asks.
---@param list? string[] only these files
function M.check_disk(list)
  local only
  if list then
    only = {}
    for _, p in ipairs(list) do
      only[paths.real(p)] = true
    end
  end
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buf)
    if wanted(buf) and not vim.bo[buf].modified and (not only or only[paths.real(name)]) and paths.exists(name) then
      if vim.fn.getbufvar(buf, "&autoread") == 1 then
        pcall(vim.cmd, "silent! checktime " .. buf)
      end
    end
  end
end

return M
