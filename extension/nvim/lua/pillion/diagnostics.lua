-- Shows Pillion's diagnostics with vim.diagnostic, and sends the editor's own diagnostics to a sidecar that supports
-- it (it uses them for languages without a server of Pillion).
local compat = require("pillion.compat")
local config = require("pillion.config")
local paths = require("pillion.paths")
local process = require("pillion.process")
local text = require("pillion.text")

local M = {}

M.ns = vim.api.nvim_create_namespace("pillion_diagnostics")
---@type table<string, pillion.DiagnosticsUpdated> by path: what is known of files that have no buffer yet, too
M.known = {}

local function line(buf, row)
  return vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
end

-- Reports whether a language server of Neovim already shows diagnostics of this buffer.
local function covered(buf)
  local get = vim.lsp.get_clients or vim.lsp.get_active_clients or vim.lsp.buf_get_clients
  local ok, clients = pcall(get, vim.lsp.get_clients and { bufnr = buf } or { bufnr = buf })
  if not ok then
    return false
  end
  for _, c in pairs(clients) do
    local attached = not c.attached_buffers or c.attached_buffers[buf]
    if attached then
      return true
    end
  end
  return false
end

local function show(buf, p)
  local list = {}
  if not covered(buf) then
    for _, d in ipairs(p.diagnostics) do
      local s, e = d.range.start, d.range["end"]
      list[#list + 1] = {
        lnum = s.line,
        col = text.column(line(buf, s.line), s.character),
        end_lnum = e.line,
        end_col = text.column(line(buf, e.line), e.character),
        severity = d.severity,
        message = d.message,
        source = d.source or "pillion",
        code = d.code,
      }
    end
  end
  vim.diagnostic.set(M.ns, buf, list)
end

---@param p pillion.DiagnosticsUpdated
function M.updated(p)
  local path = paths.from_uri(p.uri)
  if p.certainty == "pending" then
    return -- keep the old diagnostics until the next report
  end
  M.known[path] = #p.diagnostics > 0 and p or nil
  if not config.options.diagnostics then
    return
  end
  local buf = paths.buffer(path)
  if buf and compat.loaded(buf) then
    show(buf, p)
  end
end

-- Converts a diagnostic of Neovim for the protocol: Neovim counts columns in bytes, LSP in UTF-16 units.
---@param buf integer
---@param d table one of vim.diagnostic.get
---@return pillion.FileDiagnostic
function M.wire(buf, d)
  local last = d.end_lnum or d.lnum
  return {
    range = {
      start = { line = d.lnum, character = text.utf16(line(buf, d.lnum):sub(1, d.col)) },
      ["end"] = { line = last, character = text.utf16(line(buf, last):sub(1, d.end_col or d.col)) },
    },
    severity = d.severity or 1,
    code = d.code and tostring(d.code) or nil,
    source = d.source,
    message = d.message,
  }
end

-- Sends the sidecar the diagnostics that other sources found in a buffer.
local function tell(buf)
  if not compat.loaded(buf) or vim.bo[buf].buftype ~= "" or vim.api.nvim_buf_get_name(buf) == "" then
    return
  end
  local list = {}
  for _, d in ipairs(vim.diagnostic.get(buf)) do
    if d.namespace ~= M.ns and #list < 200 then
      list[#list + 1] = M.wire(buf, d)
    end
  end
  if #list == 0 and not vim.b[buf].pillion_told then
    return
  end
  vim.b[buf].pillion_told = #list > 0
  process.notify("_pillion/diagnostics/didChange", { uri = paths.to_uri(vim.api.nvim_buf_get_name(buf)), diagnostics = list })
end

-- Returns the diagnostics of a buffer, or of all buffers, as text for a prompt.
---@param buf? integer
---@return string text
---@return integer count
function M.text(buf)
  local names = { "error", "warning", "information", "hint" }
  local out = {}
  for _, d in ipairs(vim.diagnostic.get(buf)) do
    if not vim.b[d.bufnr].pillion_copy then -- a copy in which a proposal is checked (text_check.lua)
      local name = paths.short(vim.api.nvim_buf_get_name(d.bufnr))
      out[#out + 1] = ("%s:%d:%d: %s: %s"):format(name, d.lnum + 1, d.col + 1, names[d.severity or 1], (d.message:gsub("\n", " ")))
    end
  end
  return table.concat(out, "\n"), #out
end

-- Watches the diagnostics of this Neovim and of the sidecar, which has just started.
function M.follow()
  local group = vim.api.nvim_create_augroup("pillion_diagnostics", { clear = true })
  vim.api.nvim_create_autocmd("BufReadPost", {
    group = group,
    callback = function(args)
      local p = M.known[vim.api.nvim_buf_get_name(args.buf)]
      if p and config.options.diagnostics then
        show(args.buf, p)
      end
    end,
  })
  if process.can("_pillion/diagnostics/didChange") then
    local waiting = {}
    vim.api.nvim_create_autocmd("DiagnosticChanged", {
      group = group,
      callback = function(args)
        if not waiting[args.buf] then
          waiting[args.buf] = true
          vim.defer_fn(function()
            waiting[args.buf] = nil
            tell(args.buf)
          end, 150)
        end
      end,
    })
  end
end

-- Removes the diagnostics of a sidecar that has ended.
function M.clear()
  M.known = {}
  vim.diagnostic.reset(M.ns)
end

return M
