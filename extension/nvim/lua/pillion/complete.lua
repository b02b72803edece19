-- Completion in a prompt: @ for files and mentions such as @buffer, / for commands.
local context = require("pillion.context")
local process = require("pillion.process")
local sessions = require("pillion.session")

local M = {}

local limit = 50

local function special(base)
  local out = {}
  local names = vim.tbl_keys(context.words)
  table.sort(names)
  for _, w in ipairs(names) do
    if w:sub(1, #base) == base then
      out[#out + 1] = { word = w, menu = context.words[w] }
    end
  end
  return out
end

-- Lists files without the sidecar's search, with ripgrep or git; the list is kept for a short time.
local listed = {}
local function files(cwd, callback)
  local known = listed[cwd]
  if known and os.time() - known.at < 10 then
    return callback(known.files)
  end
  local cmd = vim.fn.executable("rg") == 1 and { "rg", "--files" } or vim.fn.executable("git") == 1 and { "git", "ls-files", "-co", "--exclude-standard" }
  if not cmd then
    return callback(vim.fn.globpath(cwd, "**", false, true))
  end
  local rest, found = "", {}
  vim.fn.jobstart(cmd, {
    cwd = cwd,
    on_stdout = function(_, data)
      data[1] = rest .. data[1]
      rest = table.remove(data)
      vim.list_extend(found, data)
    end,
    on_exit = function()
      listed[cwd] = { at = os.time(), files = found }
      callback(found)
    end,
  })
end

local function matches(path, query)
  local at = 1
  local low = path:lower()
  for c in query:lower():gmatch(".") do
    at = low:find(c, at, true)
    if not at then
      return false
    end
    at = at + 1
  end
  return true
end

-- Returns the completions of an @word, the best first.
---@param session pillion.Session
---@param base string with its @
---@param callback fun(items: table[])
function M.mentions(session, base, callback)
  local query = base:sub(2)
  local out = special(base)
  if process.state == "ready" and session.id and process.can("_pillion/file/search") then
    return session:call("_pillion/file/search", { query = query, kinds = { "file", "folder", "resource" }, limit = limit }, function(err, r)
      for _, m in ipairs(not err and r.matches or {}) do
        out[#out + 1] = { word = "@" .. m.path, menu = m.kind == "file" and "" or m.kind == "resource" and (m.name or m.kind) or m.kind }
      end
      callback(out)
    end)
  end
  files(session.cwd, function(list)
    local found = {}
    for _, f in ipairs(list) do
      if matches(f, query) then
        found[#found + 1] = f
      end
    end
    local low = query:lower()
    local function rank(f)
      local at = f:lower():find(low, 1, true)
      local tail = vim.fn.fnamemodify(f, ":t"):lower():find(low, 1, true)
      return (tail == 1 and 0 or tail and 1 or at and 2 or 3) * 1000 + #f
    end
    table.sort(found, function(a, b)
      local x, y = rank(a), rank(b)
      return x < y or (x == y and a < b)
    end)
    for i = 1, math.min(limit, #found) do
      out[#out + 1] = { word = "@" .. found[i], menu = "" }
    end
    callback(out)
  end)
end

local function commands(session, base)
  local out = {}
  for _, c in ipairs(session.commands) do
    if ("/" .. c.name):sub(1, #base) == base then
      out[#out + 1] = { word = "/" .. c.name, menu = c.description }
    end
  end
  return out
end

-- Returns the word before the cursor if it can be completed.
---@return integer? column from 0
---@return string? base
local function word_here()
  local cursor = vim.api.nvim_win_get_cursor(0)
  local before = vim.api.nvim_get_current_line():sub(1, cursor[2])
  local at = before:match("^.*()@[^%s]*$")
  if at and (at == 1 or before:sub(at - 1, at - 1):match("%s")) then
    return at - 1, before:sub(at)
  end
  if cursor[1] == 1 and before:match("^/[^%s]*$") then
    return 0, before
  end
end

local function session_here()
  local owner = vim.b.pillion_input_of
  local v = owner and require("pillion.chat_buffer").by_buf[owner]
  return v and v.session or sessions.get()
end

-- 'omnifunc' and 'completefunc'.
---@param findstart integer|boolean 1 in the first call
---@param base string
---@return integer|table
function M.omni(findstart, base)
  local at, word = word_here()
  if findstart == 1 then
    return at or -3
  end
  base = base ~= "" and base or word or ""
  local session = session_here()
  if base:sub(1, 1) == "/" then
    return commands(session, base)
  end
  local items
  M.mentions(session, base, function(list)
    items = list
  end)
  vim.wait(1000, function()
    return items ~= nil
  end, 10)
  return items or {}
end

local asked = 0

-- Opens the completion menu while the person types an @word or a command.
---@param session pillion.Session
function M.auto(session)
  local at, base = word_here()
  if not at or vim.fn.pumvisible() == 1 and vim.fn.complete_info({ "selected" }).selected >= 0 then
    return
  end
  if base:sub(1, 1) == "/" then
    local items = commands(session, base)
    if #items > 0 then
      vim.fn.complete(at + 1, items)
    end
    return
  end
  asked = asked + 1
  local mine, buf = asked, vim.api.nvim_get_current_buf()
  M.mentions(session, base, function(items)
    if mine ~= asked or vim.api.nvim_get_current_buf() ~= buf or not vim.fn.mode():match("^i") then
      return
    end
    local now, word = word_here()
    if now == at and word == base and #items > 0 then
      local before = vim.o.completeopt
      vim.o.completeopt = "menuone,noselect"
      vim.fn.complete(at + 1, items)
      vim.o.completeopt = before
    end
  end)
end

return M
