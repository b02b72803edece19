-- Checks a proposed text with Neovim's own language servers, before the person approves it. The sidecar requests this
-- for files for which it has no server.
--
-- The text is in a hidden buffer beside the file, to which Neovim's clients are attached. The person's buffer does
-- not change: a server that got the proposal there would mix it with what the person types. The copy has problems of
-- its own, because the server sees names twice. So the text before the change is checked in the same way, and the
-- sidecar compares the two.
local compat = require("pillion.compat")
local diagnostics = require("pillion.diagnostics")
local paths = require("pillion.paths")
local text = require("pillion.text")

local M = {}

-- Milliseconds. A server often publishes syntax errors first and other problems later, so the problems are read after
-- a pause in the messages. A server that sends nothing within `limit` does not check copies. Two limits fit into the
-- sidecar's ten seconds.
M.quiet, M.limit = 300, 4000

-- How long a checked copy is kept: if a message about a file without a buffer arrived late, Neovim would create a
-- buffer for it.
local keep = 3000

local copies = 0

-- Calls a function without autocommands: plugins must not configure a buffer that the person never sees.
local function silently(f)
  local ignored = vim.o.eventignore
  vim.o.eventignore = "all"
  local ok, err = pcall(f)
  vim.o.eventignore = ignored
  return ok, err
end

---@param buf integer
---@return table[] clients that are attached to a buffer
local function clients_of(buf)
  local list = {}
  if vim.lsp.get_clients then
    list = vim.lsp.get_clients({ bufnr = buf })
  elseif vim.lsp.buf_get_clients then
    list = vim.lsp.buf_get_clients(buf)
  end
  local out = {}
  for _, c in pairs(list) do
    out[#out + 1] = c
  end
  return out
end

-- Returns the name of a copy: in the folder of the file, because imports are relative to it, and with its extension,
-- which servers use.
local function copy_name(path)
  copies = copies + 1
  local stem, ending = path:match("^(.*[^/])(%.[^./]*)$")
  return ("%s.pillion-%d%s"):format(stem or path, copies, ending or "")
end

-- Creates a hidden buffer with a text, with the options of another buffer.
local function copy_of(like, path, content)
  local buf = vim.api.nvim_create_buf(false, true) -- unlisted, "nofile", without a swap file
  local ok = silently(function()
    local lines, eol = text.split(content, text.separator(like))
    vim.api.nvim_buf_set_name(buf, copy_name(path))
    vim.bo[buf].fileformat = vim.bo[like].fileformat
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
    vim.bo[buf].eol = eol
    vim.bo[buf].filetype = vim.bo[like].filetype -- the servers get the language from it
    vim.b[buf].pillion_copy = true -- lists of problems leave out this buffer
  end)
  if ok then
    return buf
  end
  vim.api.nvim_buf_delete(buf, { force = true })
end

-- Asks the servers that report only when they are asked. Neovim itself does so only for buffers in a window.
local function pull(buf, clients)
  for _, c in ipairs(clients) do
    if (c.server_capabilities or {}).diagnosticProvider ~= nil then
      pcall(vim.lsp.buf_request, buf, "textDocument/diagnostic", { textDocument = { uri = vim.uri_from_bufnr(buf) } })
      return -- the request goes to all of them
    end
  end
end

-- Checks one text; done gets its problems, or nil if no server reported on it.
local function check(like, path, clients, content, done)
  local buf = copy_of(like, path, content)
  if not buf then
    return done(nil)
  end
  local timer, spoke, ended = compat.uv.new_timer(), false, false
  local function finish()
    if ended then
      return
    end
    ended = true
    timer:stop()
    timer:close()
    local found
    if spoke and compat.loaded(buf) then
      found = {}
      local own, real = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buf), ":t"), vim.fn.fnamemodify(path, ":t")
      for _, d in ipairs(vim.diagnostic.get(buf)) do
        local p = diagnostics.wire(buf, d)
        p.message = p.message:gsub(vim.pesc(own), (real:gsub("%%", "%%%%"))) -- a server may include the file's name in a message
        found[#found + 1] = p
      end
    end
    for _, c in ipairs(clients) do
      pcall(vim.lsp.buf_detach_client, buf, c.id) -- closes the document in the server
    end
    vim.defer_fn(function()
      if vim.api.nvim_buf_is_valid(buf) then
        vim.api.nvim_buf_delete(buf, { force = true })
      end
    end, keep)
    done(found)
  end
  vim.api.nvim_create_autocmd("DiagnosticChanged", {
    buffer = buf,
    callback = function()
      if not ended then
        spoke = true
        timer:start(M.quiet, 0, vim.schedule_wrap(finish))
      end
    end,
  })
  timer:start(M.limit, 0, vim.schedule_wrap(finish))
  for _, c in ipairs(clients) do
    pcall(vim.lsp.buf_attach_client, buf, c.id)
  end
  pull(buf, clients)
end

-- Asks for the problems of the person's buffer again. A server that checks a copy may withdraw the problems of the file beside it, and some
-- report those again only after the next change.
local function ask_again(buf, clients)
  if not compat.loaded(buf) then
    return
  end
  pull(buf, clients)
  local version = (vim.lsp.util.buf_versions or {})[buf] or vim.api.nvim_buf_get_changedtick(buf)
  for _, c in ipairs(clients) do
    pcall(c.notify, "textDocument/didChange", { textDocument = { uri = vim.uri_from_bufnr(buf), version = version }, contentChanges = {} })
  end
end

-- Answers _pillion/diagnostics/check.
---@param p pillion.EditorCheckRequest
---@param reply fun(result?: table, err?: table)
function M.answer(p, reply)
  local path = paths.from_uri(p.uri)
  local buf = paths.buffer(path)
  local clients = buf and compat.loaded(buf) and clients_of(buf) or {}
  if #clients == 0 then
    return reply({ checked = false, reason = "no language server of Neovim is attached to " .. paths.short(path) })
  end
  -- One after the other: with both copies at once, a server would see names twice.
  check(buf, path, clients, p.before, function(before)
    check(buf, path, clients, p.after, function(after)
      ask_again(buf, clients)
      if not (before and after) then
        return reply({ checked = false, reason = "Neovim's language servers did not look at the proposal in time" })
      end
      reply({ checked = true, before = before, after = after })
    end)
  end)
end

return M
